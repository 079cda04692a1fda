//! Pages of rows into a table of the user's own, on a real server.

use tenure_contract::sink::{Table, pages, sink};
use tenure_core::{Json, Timestamp};
use tenure_postgres::sink::upsert;
use tenure_store::sink::{Keeps, Row, Sink, Type, Upserted, Value};
use tenure_store::{StoreError, row};
use tokio_postgres::{Client, NoTls};

use crate::database::Database;

const TABLE: &str = "create table price (source bigint, dedupe_key text, title text, rate double precision, \
                     is_open boolean, doc jsonb, seen_at timestamptz, strength int, unique (source, dedupe_key))";
const SMALL: &str = "create table t (k bigint primary key, v text, s bigint)";

/// A database with this table, and a connection to it.
async fn with_table(table: &str) -> (Database, Client) {
    let database = Database::bare();
    database.sql(table);
    let client = connect(&database).await;
    (database, client)
}

async fn connect(database: &Database) -> Client {
    let (client, connection) = tokio_postgres::connect(&database.url, NoTls).await.expect("connect");
    tokio::spawn(connection);
    client
}

/// Every row of `price`, in the types of the script.
async fn read(client: &Client) -> Vec<Row> {
    let sql = "select source, dedupe_key, title, rate, is_open, doc::text, (extract(epoch from seen_at) * 1000000)::bigint, \
               strength::bigint from price order by source, dedupe_key collate \"C\"";
    let rows = client.query(sql, &[]).await.expect("read");
    rows.iter()
        .map(|row| {
            row![
                row.get::<_, i64>(0),
                row.get::<_, String>(1),
                row.get::<_, Option<String>>(2),
                row.get::<_, Option<f64>>(3),
                row.get::<_, Option<bool>>(4),
                row.get::<_, Option<String>>(5).map(Json::from_store),
                row.get::<_, Option<i64>>(6).map(Timestamp::from_micros),
                row.get::<_, i64>(7)
            ]
        })
        .collect()
}

fn small() -> Sink {
    Sink::table("t").key("k", Type::Int).value("v", Type::Text).keep_stronger("s").expect("good names")
}

fn counts(inserted: u64, updated: u64, kept: u64, folded: u64) -> Upserted {
    Upserted { inserted, updated, kept, folded }
}

#[tokio::test]
async fn a_script_of_pages_gives_the_counts_and_rows_of_the_model() {
    let (database, mut client) = with_table(TABLE).await;
    for keeps in [Keeps::Stronger, Keeps::Last] {
        for seed in 0..20 {
            database.sql("truncate price");
            let mut model = Table::default();
            for (no, page) in pages(seed).into_iter().enumerate() {
                let expected = model.upsert(keeps, &page);
                let tx = client.transaction().await.expect("begin");
                let upserted = sink("price", keeps).upsert(&tx, page).await.expect("upsert");
                tx.commit().await.expect("commit");
                assert_eq!(upserted, expected, "seed {seed}, page {no}, {keeps:?}");
                assert_eq!(read(&client).await, model.rows(), "seed {seed}, page {no}, {keeps:?}");
            }
        }
    }
}

#[tokio::test]
async fn the_weaker_and_the_equal_give_way_to_what_is_there() {
    let (database, client) = with_table(SMALL).await;
    let sink = small();
    let page = async |rows: Vec<Row>| upsert(&client, &sink, &rows).await.expect("upsert");
    assert_eq!(page(vec![row![1, "a", 5], row![2, "b", 5]]).await, counts(2, 0, 0, 0));
    assert_eq!(page(vec![row![1, "weaker", 4], row![2, "equal", 5]]).await, counts(0, 0, 2, 0));
    let mixed = vec![row![3, "first", 7], row![1, "stronger", 6], row![3, "tie", 7], row![1, "weak", 5]];
    assert_eq!(page(mixed).await, counts(1, 1, 0, 2));
    // Somebody else's row without a strength gives way to any.
    database.sql("update t set s = null where k = 2");
    assert_eq!(page(vec![row![2, "any", -9]]).await, counts(0, 1, 0, 0));
    assert_eq!(page(vec![]).await, Upserted::default());
    assert_eq!(database.sql("select string_agg(k || v || s, ',' order by k) from t"), "1stronger6,2any-9,3first7");
}

#[tokio::test]
async fn ten_thousand_rows_are_one_page() {
    let (_database, client) = with_table(SMALL).await;
    let page = |strength: i64| (0..10_000).map(|k| row![k, format!("v{k}"), strength + k % 2]).collect::<Vec<_>>();
    let half: Vec<Row> = (0..10_000).map(|k| row![k, "new", 2]).collect();
    for (rows, expected) in
        [(page(1), counts(10_000, 0, 0, 0)), (page(1), counts(0, 0, 10_000, 0)), (half, counts(0, 5_000, 5_000, 0))]
    {
        assert_eq!(upsert(&client, &small(), &rows).await.expect("upsert"), expected);
    }
}

#[tokio::test]
async fn a_page_with_a_nul_is_refused_before_the_server_hears_of_it() {
    let (database, mut client) = with_table(SMALL).await;
    let tx = client.transaction().await.expect("begin");
    let refused = small().upsert(&tx, vec![row![1, "good", 1], row![2, "a\0b", 1]]).await.expect_err("a NUL");
    assert!(refused.to_string().contains("column v of row 1 takes text without NUL"), "{refused}");
    // The transaction is still good.
    assert_eq!(small().upsert(&tx, vec![row![1, "good", 1]]).await.expect("upsert"), counts(1, 0, 0, 0));
    tx.rollback().await.expect("roll back");
    assert_eq!(database.sql("select count(*) from t"), "0");
}

/// Without an order of their own, two such pages take each other's locks: SQLSTATE 40P01 after a second.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_pages_in_opposite_order_do_not_deadlock() {
    let (database, mut one) = with_table(SMALL).await;
    let mut other = connect(&database).await;
    let page = async |client: &mut Client, keys: Vec<i64>, strength: i64| {
        let rows = keys.into_iter().map(|k| row![k, "v", strength]).collect();
        let tx = client.transaction().await.expect("begin");
        let upserted = small().upsert(&tx, rows).await.expect("no deadlock");
        tx.commit().await.expect("commit");
        upserted
    };
    for round in 0..15 {
        let up = page(&mut one, (0..3_000).collect(), round);
        let down = page(&mut other, (0..3_000).rev().collect(), round);
        let (up, down) = tokio::join!(up, down);
        // Whoever comes second meets the first one's rows.
        let (new, kept) = (up.inserted + down.inserted + up.updated + down.updated, up.kept + down.kept);
        assert_eq!((new, kept), (3_000, 3_000), "{up:?} {down:?}");
    }
}

#[tokio::test]
async fn a_table_that_is_not_as_described_is_named() {
    let cases = [
        ("create table u (k bigint)", "relation \"t\" does not exist"),
        ("create table t (k bigint primary key, s bigint)", "column \"v\" of relation \"t\" does not exist"),
        ("create table t (k bigint, v text, s bigint)", "no unique or exclusion constraint matching"),
        ("create table t (k bigint primary key, v bigint, s bigint)", "column \"v\" is of type bigint"),
    ];
    for (table, words) in cases {
        let (_database, client) = with_table(table).await;
        let refused = upsert(&client, &small(), &[row![1, "v", 1]]).await.expect_err(table);
        let said = refused.to_string();
        assert!(matches!(refused, StoreError::Schema(_)), "{table}: {refused:?}");
        assert!(said.starts_with("table t does not fit the database: ") && said.contains(words), "{said}");
    }
}

#[tokio::test]
async fn what_the_table_refuses_is_told_and_leaves_no_row() {
    let cases: [(&str, Value, &str, &str); 5] = [
        (
            "create table t (k bigint primary key, v text not null, s bigint)",
            Value::Null,
            "other",
            "row of `table t` is refused",
        ),
        (
            "create table t (k bigint primary key, v text check (v <> 'bad'), s int)",
            "bad".into(),
            "other",
            "row of `table t`",
        ),
        ("create table t (k bigint primary key, v varchar(3), s bigint)", "long".into(), "a", "input `22001`"),
        (
            "create table t (k bigint primary key, v text unique, s bigint)",
            "bad".into(),
            "bad",
            "table t: a row was refused",
        ),
        (
            "create table p (v text unique); create table t (k bigint primary key, v text references p (v), s int)",
            "v".into(),
            "v",
            "table t: a row was refused",
        ),
    ];
    for (table, bad, first, words) in cases {
        let (database, client) = with_table(table).await;
        let rows = [row![1, first, 1], vec![2.into(), bad, 1.into()]];
        let said = upsert(&client, &small(), &rows).await.expect_err(table).to_string();
        assert!(said.starts_with(words), "{table}: {said}");
        assert_eq!(database.sql("select count(*) from t"), "0", "{table}");
    }
}

#[tokio::test]
async fn keys_that_are_one_to_the_server_only_are_refused() {
    let (_database, client) = with_table("create table t (k char(3) primary key, v text)").await;
    let sink = Sink::table("t").key("k", Type::Text).value("v", Type::Text).overwrite().expect("good names");
    let refused = upsert(&client, &sink, &[row!["a", "x"], row!["a ", "y"]]).await.expect_err("one key");
    assert!(matches!(&refused, StoreError::Invalid(invalid) if invalid.field == "key"), "{refused:?}");
}

#[tokio::test]
async fn words_of_sql_a_schema_and_json_are_columns_like_others() {
    let table = r#"create schema shop; create table shop."order" ("group" text, "select" int, "primary" json, primary key ("group", "select"))"#;
    let (_database, client) = with_table(table).await;
    let names = Sink::table("shop.order").key("select", Type::Int).key("group", Type::Text);
    let sink = names.clone().value("primary", Type::Json).overwrite().expect("good names");
    let json = |text: &str| Json::parse("doc", text).expect("JSON");
    let first = [row![1, "a", json(r#"{"a":1,"b":2}"#)], row![1, "b", json("null")]];
    assert_eq!(upsert(&client, &sink, &first).await.expect("upsert"), counts(2, 0, 0, 0));
    // The same document in other words is kept; JSON's null is not the absence of a document.
    let second = [row![1, "a", json(r#"{ "b": 2, "a": 1 }"#)], row![1, "b", None::<Json>]];
    assert_eq!(upsert(&client, &sink, &second).await.expect("upsert"), counts(0, 1, 1, 0));
    let keys = names.overwrite().expect("good names");
    let third = [row![1, "a"], row![2, "a"], row![2, "a"]];
    assert_eq!(upsert(&client, &keys, &third).await.expect("upsert"), counts(1, 0, 1, 1));
}

/// Which row was there before is read from `xmax`, and a partitioned table has none to show.
#[tokio::test]
async fn a_partitioned_table_is_refused_and_left_alone() {
    let table = "create table t (k bigint primary key, v text, s bigint) partition by hash (k); \
                 create table t0 partition of t for values with (modulus 1, remainder 0)";
    let (database, client) = with_table(table).await;
    let refused = upsert(&client, &small(), &[row![1, "a", 5]]).await.expect_err("no counts");
    assert!(matches!(&refused, StoreError::Schema(said) if said.contains("system column")), "{refused:?}");
    assert_eq!(database.sql("select count(*) from t"), "0");
    // A partition by its own name is a table like others.
    let part = Sink::table("t0").key("k", Type::Int).value("v", Type::Text).keep_stronger("s").expect("good names");
    assert_eq!(upsert(&client, &part, &[row![1, "a", 5]]).await.expect("upsert"), counts(1, 0, 0, 0));
}
