//! Runs one measure of one peer: `tenure-bench-peers SYSTEM ACTION URL OPTIONS`, OPTIONS being JSON. `bench/peers/run` calls it.
//!
//! # Layout
//! - [`measures`]: the measures, the same for every peer
//! - [`graphile_worker`], [`apalis_postgres`], [`riverqueue`]: the peers with their settings

mod apalis_postgres;
mod graphile_worker;
mod measures;
mod riverqueue;

use anyhow::{Context as _, Result, bail};
use measures::{Options, run};

#[tokio::main]
async fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [system, action, url, rest @ ..] = arguments.as_slice() else {
        bail!("usage: tenure-bench-peers SYSTEM ACTION URL [OPTIONS]")
    };
    let options: Options = serde_json::from_str(rest.first().map_or("{}", String::as_str)).context("the options")?;
    match system.as_str() {
        "graphile_worker" => run::<graphile_worker::GraphileWorker>(action, url, options).await?,
        "apalis-postgres" => run::<apalis_postgres::ApalisPostgres>(action, url, options).await?,
        "riverqueue" => run::<riverqueue::Riverqueue>(action, url, options).await?,
        other => bail!("there is no peer `{other}`"),
    }
    // Workers and pools of a peer that was measured are of no use any more.
    std::process::exit(0)
}
