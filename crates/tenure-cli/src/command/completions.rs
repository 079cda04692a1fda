//! `tenure completions`: a script that teaches a shell the commands and flags.

use clap::{Args, CommandFactory, ValueEnum};
use serde_json::json;

use super::Answer;
use crate::args::Cli;
use crate::failure::{Failure, exit};
use crate::output::Output;

const EXAMPLES: &str = "\
Examples:
  tenure completions bash > ~/.local/share/bash-completion/completions/tenure
  tenure completions zsh > ~/.zfunc/_tenure        with fpath+=(~/.zfunc) before compinit in ~/.zshrc
  tenure completions fish > ~/.config/fish/completions/tenure.fish
  tenure completions powershell >> $PROFILE

Open a new shell afterwards; for this one only: source <(tenure completions bash)";

/// Print a script that completes commands and flags in a shell
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CompletionsArgs {
    /// The shell it is for
    #[arg(value_enum)]
    shell: Shell,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Shell {
    Bash,
    Zsh,
    Fish,
    Powershell,
}

pub(crate) fn run(args: &CompletionsArgs, out: &mut Output) -> Result<Answer, Failure> {
    use clap_complete::Shell as Generator;
    let (name, generator) = match args.shell {
        Shell::Bash => ("bash", Generator::Bash),
        Shell::Zsh => ("zsh", Generator::Zsh),
        Shell::Fish => ("fish", Generator::Fish),
        Shell::Powershell => ("powershell", Generator::PowerShell),
    };
    let mut script = Vec::new();
    clap_complete::generate(generator, &mut Cli::command(), "tenure", &mut script);
    let no_text = |error| Failure::new("output", exit::STORE, "the script is no text").caused_by(&error);
    let script = String::from_utf8(script).map_err(no_text)?;
    if out.is_json() {
        out.json(&json!({ "shell": name, "script": script }))?;
    } else {
        out.line(script.trim_end());
    }
    Ok(Answer::Done)
}
