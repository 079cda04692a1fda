//! How many files, and so connections, a server may have open.

/// Connections of a server whose process may open any number of files.
const CONNECTIONS_MAX: usize = 10_000;
/// Files for everything else: the store, webhooks, the broker, the log. Under a low limit it is half of the files.
const OTHER_FILES: usize = 512;

/// Raises the limit of open files as far as the system lets, and answers how many connections fit below it.
pub(crate) fn connections_max() -> usize {
    match raise() {
        Some(files) => {
            let fit = fitting(files);
            if fit < CONNECTIONS_MAX {
                tracing::warn!(
                    files,
                    connections = fit,
                    "the limit of open files (RLIMIT_NOFILE) leaves fewer connections than {CONNECTIONS_MAX}: raise it with ulimit -n or LimitNOFILE"
                );
            }
            fit
        }
        None => CONNECTIONS_MAX,
    }
}

/// The connections that fit below a limit of open files.
fn fitting(files: u64) -> usize {
    let files = usize::try_from(files).unwrap_or(usize::MAX);
    files.saturating_sub(OTHER_FILES.min(files / 2)).clamp(1, CONNECTIONS_MAX)
}

/// Raises the soft limit to the hard one, as far as it is needed, and answers what it is then.
#[cfg(unix)]
fn raise() -> Option<u64> {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};
    let wanted = u64::try_from(CONNECTIONS_MAX + OTHER_FILES).unwrap_or(u64::MAX);
    let (soft, hard) = match getrlimit(Resource::RLIMIT_NOFILE) {
        Ok(limits) => limits,
        Err(error) => {
            tracing::warn!(error = %error, "the limit of open files cannot be read");
            return None;
        }
    };
    let raised = wanted.min(hard);
    if soft >= raised {
        return Some(soft);
    }
    match setrlimit(Resource::RLIMIT_NOFILE, raised, hard) {
        Ok(()) => {
            tracing::info!(from = soft, to = raised, "the limit of open files is raised");
            Some(raised)
        }
        Err(error) => {
            tracing::warn!(error = %error, files = soft, "the limit of open files cannot be raised");
            Some(soft)
        }
    }
}

#[cfg(not(unix))]
fn raise() -> Option<u64> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_files_for_the_rest() {
        for (files, connections) in
            [(0, 1), (64, 32), (256, 128), (1_024, 512), (4_096, 3_584), (10_512, 10_000), (u64::MAX, 10_000)]
        {
            assert_eq!(fitting(files), connections, "{files}");
        }
    }
}
