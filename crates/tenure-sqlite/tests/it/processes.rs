//! Several processes on one file, at random, one of them killed again and again; held against what each was told.
//!
//! `TENURE_ATTACK_SEED` chooses the dice. A seed repeats the choices, not the interleaving.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::{BufRead, BufReader, Lines};
use std::process::{Child, ChildStdout, Command, Stdio};

use rusqlite::Connection;
use tenure_core::JobId;
use tenure_core::seal::Anchor;
use tenure_sqlite::{SqliteOptions, SqliteStore};
use tenure_store::{AdminStore, JournalStore, audit};

use crate::against_core::Dice;
use crate::fixture::Directory;
use crate::process::{PATH, SEED};

/// How often one process is killed.
const KILLS: u64 = 10;

/// A run in which one of these did not happen proves nothing.
const BITES: [&str; 19] = [
    "created",
    "found",
    "named",
    "claimed",
    "now",
    "before",
    "lost",
    "within",
    "rolled",
    "stolen",
    "reclaimed",
    "released",
    "requested",
    "canceled",
    "requeued",
    "renewed",
    "refused",
    "sealed",
    "stranger",
];

#[tokio::test]
async fn three_processes_break_nothing_though_one_is_killed_again_and_again() {
    let seed: u64 = std::env::var("TENURE_ATTACK_SEED").map_or(1, |seed| seed.parse().unwrap());
    let directory = Directory::new();
    let store = SqliteStore::open(directory.file(), SqliteOptions::default()).unwrap();
    store.migrate().await.unwrap();
    let mut ledger = Ledger::default();

    // What they say is read while they say it: a full pipe would stop them.
    let steady: Vec<_> = (0..2)
        .map(|n| {
            let Process { child, lines } = Process::start(&directory, seed * 1_000 + n);
            (child, std::thread::spawn(|| lines.map(Result::unwrap).collect::<Vec<_>>()))
        })
        .collect();
    let (mut dice, mut anchor) = (Dice(seed), None);
    for kill in 0..KILLS {
        let mut victim = Process::start(&directory, seed * 1_000 + 10 + kill);
        let lines = 100 + dice.roll(400);
        victim.lines.by_ref().take(lines).for_each(|line| ledger.note(&line.unwrap()));
        victim.child.kill().unwrap();
        victim.child.wait().unwrap();
        let rest: Vec<String> = victim.lines.map(Result::unwrap).collect();
        // The last line may be half of one.
        rest.split_last().into_iter().flat_map(|(_, whole)| whole).for_each(|line| ledger.note(line));
        let seal = store.seal_journal().await.unwrap();
        anchor =
            anchor.or(seal.filter(|seal| seal.no == 1).map(|seal| Anchor { no: 1, rows: seal.rows, hash: seal.hash }));
    }
    for (mut child, lines) in steady {
        drop(child.stdin.take());
        lines.join().unwrap().iter().for_each(|line| ledger.note(line));
        assert!(child.wait().unwrap().success(), "seed {seed}: {:?}", ledger.tally);
    }

    let conn = Connection::open(directory.file()).unwrap();
    let unanswered = ledger.unanswered();
    let stored = unanswered.iter().filter(|job| is_stored(&conn, job)).count();
    println!("seed {seed}, {KILLS} kills, {} asked and not answered, {stored} of them stored", unanswered.len());
    println!("{:?}", ledger.tally);
    assert_eq!(store.find_violations(10).await.unwrap(), [], "seed {seed}");
    while store.seal_journal().await.unwrap().is_some() {}
    let report = audit::verify(&store, anchor.as_ref(), |_| ()).await.unwrap();
    assert_eq!((report.findings, report.tail), (Vec::new(), 0), "seed {seed}");
    ledger.check(&conn);
    for bite in BITES {
        assert!(ledger.tally.contains_key(bite), "seed {seed}: nothing was {bite}, the run is void");
    }
}

struct Process {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Process {
    fn start(directory: &Directory, seed: u64) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "process::one", "--nocapture"])
            .env(PATH, directory.file())
            .env(SEED, seed.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }
}

/// What the processes were told.
#[derive(Default)]
struct Ledger {
    tally: BTreeMap<String, u64>,
    asked: HashSet<String>,
    found: HashSet<String>,
    /// How often each was created.
    created: HashMap<String, u64>,
    /// The jobs of each idempotency key.
    named: HashMap<String, HashSet<String>>,
    /// The endings of each grant that somebody was told are written.
    accepted: HashMap<(String, i64), Vec<i64>>,
    /// Completions of users' transactions, each with the job it enqueued.
    within: Vec<(String, i64, String)>,
    rolled: Vec<String>,
    claims: HashMap<(String, i64), u64>,
}

impl Ledger {
    fn note(&mut self, line: &str) {
        let words: Vec<&str> = line.split(' ').collect();
        let number = |word: &str| -> i64 { word.parse().unwrap() };
        match words[..] {
            ["asked", job] => drop(self.asked.insert(job.into())),
            ["created", job] => *self.created.entry(job.into()).or_default() += 1,
            ["found", job] => drop(self.found.insert(job.into())),
            ["named", job, key] => drop(self.named.entry(key.into()).or_default().insert(job.into())),
            ["claimed", job, lease] => *self.claims.entry((job.into(), number(lease))).or_default() += 1,
            ["now" | "reclaimed", job, lease, how] => {
                self.accepted.entry((job.into(), number(lease))).or_default().push(number(how));
            }
            ["within", job, lease, next] => self.within.push((job.into(), number(lease), next.into())),
            ["rolled", next] => self.rolled.push(next.into()),
            _ => {}
        }
        *self.tally.entry(words[0].into()).or_default() += 1;
    }

    /// Asked by a process that was killed before it heard.
    fn unanswered(&self) -> Vec<&str> {
        let answered = |job: &&str| self.created.contains_key(*job) || self.found.contains(*job);
        self.asked.iter().map(String::as_str).filter(|job| !answered(job)).collect()
    }

    fn check(&self, conn: &Connection) {
        for (job, times) in &self.created {
            assert_eq!((*times, is_stored(conn, job)), (1, true), "job {job} was created {times} times");
        }
        for (key, jobs) in &self.named {
            assert_eq!(jobs.len(), 1, "one request, several jobs: {key} {jobs:?}");
        }
        for (grant, times) in &self.claims {
            assert_eq!(*times, 1, "{grant:?} was handed out {times} times");
        }
        for ((job, lease), hows) in &self.accepted {
            assert_eq!(*hows, [ended(conn, job, *lease).unwrap()], "job {job}, lease {lease}");
        }
        for (job, lease, next) in &self.within {
            assert_eq!((ended(conn, job, *lease), is_stored(conn, next)), (Some(1), true), "job {job}, lease {lease}");
        }
        for job in &self.rolled {
            assert!(!is_stored(conn, job), "job {job} was rolled back and is there");
        }
        let twice = "select group_concat(distinct key) from (
            select key from job where policy = 3 group by tenant, scope, key having count(*) > 1
            union all
            select key from job where policy = 1 and not exists (
                select 1 from attempt where attempt.job = job.id and attempt.final = 1)
            group by tenant, scope, key having count(*) > 1)";
        assert_eq!(conn.query_row(twice, [], |row| row.get::<_, Option<String>>(0)).unwrap(), None);
    }
}

fn id(job: &str) -> Vec<u8> {
    job.parse::<JobId>().unwrap().as_uuid().as_bytes().to_vec()
}

fn is_stored(conn: &Connection, job: &str) -> bool {
    conn.prepare_cached("select 1 from job where id = ?1").unwrap().exists([id(job)]).unwrap()
}

/// How a grant ended, by its row.
fn ended(conn: &Connection, job: &str, lease: i64) -> Option<i64> {
    let sql = "select how from attempt where job = ?1 and lease = ?2";
    conn.prepare_cached(sql).unwrap().query_row((id(job), lease), |row| row.get(0)).ok()
}
