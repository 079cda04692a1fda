//! The `tenure` binary: one file per subcommand.
//!
//! # Layout
//! - [`args`]: the command line; [`settings`]: flags, environment and `tenure.toml` in one precedence
//! - [`open`]: the store that the settings name; [`broker`]: the broker, if they name one
//! - [`command`]: what each subcommand does, one file each
//! - [`kinds`]: what `tenure worker` can do by itself, one file each; [`log`](mod@log): how it tells
//! - [`bulk`]: work on many jobs; [`confirm`]: a question before it
//! - [`output`], [`table`], [`paint`], [`moment`], [`pretty`], [`bar`], [`progress`], [`screen`]: what people see; what programs see is `tenure_server::wire`
//! - [`terminal`]: what reaches a terminal is safe to show
//! - [`follow`]: commands that go on until Ctrl-C
//! - [`failure`]: errors, their codes and exit codes

mod args;
mod settings;

mod broker;
mod open;
mod open_files;

mod bulk;
mod command;
mod confirm;
mod kinds;
mod log;

mod bar;
mod output;
mod paint;
mod progress;
mod screen;
mod table;
mod terminal;

mod failure;
mod follow;

fn main() -> std::process::ExitCode {
    match args::parse() {
        Ok(args) => command::run(args),
        Err(exit) => exit,
    }
}
