//! The `tenure` binary: one file per subcommand.
//!
//! # Layout
//! - [`args`]: the command line; [`settings`]: flags, environment and `tenure.toml` in one precedence
//! - [`open`]: the store that the settings name
//! - [`command`]: what each subcommand does, one file each
//! - [`output`], [`table`], [`paint`], [`moment`], [`pretty`], [`progress`]: what people see; [`wire`]: what programs see
//! - [`failure`]: errors, their codes and exit codes

mod args;
mod settings;

mod open;

mod command;

mod moment;
mod output;
mod paint;
mod pretty;
mod progress;
mod table;
mod wire;

mod failure;

fn main() -> std::process::ExitCode {
    match args::parse() {
        Ok(args) => command::run(args),
        Err(exit) => exit,
    }
}
