//! A small disk of a server's own, in memory: one that can be full without harm to anybody else.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::process::Command;

use crate::guarded::Home;

/// A mounted disk; dropping it unmounts it.
#[derive(Debug)]
pub(crate) struct Disk(PathBuf);

impl Disk {
    /// Mounts a disk of so many MiB on a new directory in `home`, for its owner alone.
    pub(crate) fn mount(home: &Home, name: &str, mib: u32) -> io::Result<Self> {
        let path = home.dir.join(name);
        fs::create_dir(&path)?;
        let (uid, gid) = home.user.ok_or_else(|| io::Error::other("no small disk: only root may mount one"))?;
        let options = format!("size={mib}m,mode=700,uid={uid},gid={gid}");
        let mut mount = Command::new("mount");
        let output = mount.args(["--types", "tmpfs", "--options", &options, "tmpfs"]).arg(&path).output()?;
        if output.status.success() {
            return Ok(Self(path));
        }
        Err(io::Error::other(format!("no small disk: {}", String::from_utf8_lossy(&output.stderr).trim())))
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // Lazily: a process that is about to end may still have a file open.
        let _left_behind = Command::new("umount").arg("--lazy").arg(&self.0).output();
    }
}
