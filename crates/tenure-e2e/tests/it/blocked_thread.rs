//! A handler that blocks its thread is alone with that.

use tenure_e2e::Act;
use tenure_e2e::stage::Stage;
use tenure_e2e::watch::watch;

const ROUNDS: usize = 40;
const DEAF: usize = 4;
const BESIDES: usize = 5;

/// Handlers that block threads, and tell the runtime so, take nothing from the others: those go on, and so does the loop.
#[tokio::test(flavor = "multi_thread")]
async fn a_blocked_thread_leaves_the_others_running() {
    let mut stage = Stage::postgres().await;
    let _worker = stage.worker("w", &["--queue", "default=16", "--threads", "8"]);
    for round in 0..ROUNDS {
        let gate = format!("round-{round}");
        let (starts, ends) = (stage.count("start"), stage.count("end"));
        stage.enqueue((0..DEAF).map(|_| Act::HoldDeaf { gate: gate.clone() }).collect()).await;
        watch("the deaf ones block their threads", async || (stage.count("start") == starts + DEAF).then_some(()))
            .await;
        stage.enqueue((0..BESIDES).map(|_| Act::Wait { ms: 1 }).collect()).await;
        watch(&format!("the others end in round {round}"), async || {
            (stage.count("end") == ends + BESIDES).then_some(())
        })
        .await;
        stage.gates.open(&gate).unwrap();
        watch("the deaf ones end", async || (stage.count("end") == ends + BESIDES + DEAF).then_some(())).await;
    }
    println!("{ROUNDS} rounds with {DEAF} of 8 threads blocked, and {BESIDES} jobs done meanwhile in each");
}
