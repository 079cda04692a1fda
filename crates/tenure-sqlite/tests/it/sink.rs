//! Pages of rows into a table of the user's own.

use tenure_contract::dice::Dice;
use tenure_contract::sink::{Table, pages, sink};
use tenure_core::{Json, Timestamp};
use tenure_sqlite::Transaction;
use tenure_store::sink::{Keeps, Row, Sink, Type, Upserted, Value};
use tenure_store::{StoreError, row};

use crate::fixture::Fixture;

const TABLE: &str = "create table price (source integer, dedupe_key text, title text, rate real, is_open integer, \
                     doc text, seen_at integer, strength integer, unique (source, dedupe_key))";

/// Runs `work` in a transaction on a fresh store with this table.
async fn with_table<T: Send + 'static>(
    table: &str,
    work: impl FnOnce(&Transaction<'_, '_>) -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    let table = table.to_owned();
    let fixture = Fixture::memory().await;
    let worked = fixture.store.transaction(move |tx| {
        tx.connection().execute_batch(&table).unwrap();
        work(tx)
    });
    worked.await
}

/// Every row of `price`, in the types of the script.
fn read(tx: &Transaction<'_, '_>) -> Vec<Row> {
    let sql = "select source, dedupe_key, title, rate, is_open, doc, seen_at, strength from price order by 1, 2";
    let mut statement = tx.connection().prepare(sql).unwrap();
    let rows = statement.query_map([], |row| {
        let time = row.get::<_, Option<i64>>(6)?.map(Timestamp::from_micros);
        let doc = row.get::<_, Option<String>>(5)?.map(Json::from_store);
        Ok(row![
            row.get::<_, i64>(0)?,
            row.get::<_, String>(1)?,
            row.get::<_, Option<String>>(2)?,
            row.get::<_, Option<f64>>(3)?,
            row.get::<_, Option<bool>>(4)?,
            doc,
            time,
            row.get::<_, i64>(7)?
        ])
    });
    rows.unwrap().map(Result::unwrap).collect()
}

fn small() -> Sink {
    Sink::table("t").key("k", Type::Int).value("v", Type::Text).keep_stronger("s").unwrap()
}

const SMALL: &str = "create table t (k integer primary key, v text, s integer)";

fn counts(inserted: u64, updated: u64, kept: u64, folded: u64) -> Upserted {
    Upserted { inserted, updated, kept, folded }
}

#[tokio::test]
async fn a_script_of_pages_gives_the_counts_and_rows_of_the_model() {
    for keeps in [Keeps::Stronger, Keeps::Last] {
        for seed in 0..60 {
            let played = with_table(TABLE, move |tx| {
                let mut model = Table::default();
                for (no, page) in pages(seed).into_iter().enumerate() {
                    let expected = model.upsert(keeps, &page);
                    assert_eq!(sink("price", keeps).upsert(tx, page)?, expected, "seed {seed}, page {no}, {keeps:?}");
                    assert_eq!(read(tx), model.rows(), "seed {seed}, page {no}, {keeps:?}");
                }
                Ok(())
            });
            played.await.unwrap();
        }
    }
}

#[tokio::test]
async fn the_weaker_and_the_equal_give_way_to_what_is_there() {
    let played = with_table(SMALL, |tx| {
        let sink = small();
        assert_eq!(sink.upsert(tx, vec![row![1, "a", 5], row![2, "b", 5]])?, counts(2, 0, 0, 0));
        assert_eq!(sink.upsert(tx, vec![row![1, "weaker", 4], row![2, "equal", 5]])?, counts(0, 0, 2, 0));
        let page = vec![row![3, "first", 7], row![1, "stronger", 6], row![3, "tie", 7], row![1, "weak", 5]];
        assert_eq!(sink.upsert(tx, page)?, counts(1, 1, 0, 2));
        // Somebody else's row without a strength gives way to any.
        tx.connection().execute("update t set s = null where k = 2", []).unwrap();
        assert_eq!(sink.upsert(tx, vec![row![2, "any", -9]])?, counts(0, 1, 0, 0));
        assert_eq!(sink.upsert(tx, vec![])?, Upserted::default());
        let all = "select group_concat(k || v || s order by k) from t";
        Ok(tx.connection().query_row(all, [], |row| row.get::<_, String>(0)).unwrap())
    });
    assert_eq!(played.await.unwrap(), "1stronger6,2any-9,3first7");
}

#[tokio::test]
async fn ten_thousand_rows_are_one_page() {
    let played = with_table(SMALL, |tx| {
        let page = |strength: i64| (0..10_000).map(|k| row![k, format!("v{k}"), strength + k % 2]).collect::<Vec<_>>();
        assert_eq!(small().upsert(tx, page(1))?, counts(10_000, 0, 0, 0));
        assert_eq!(small().upsert(tx, page(1))?, counts(0, 0, 10_000, 0));
        let half = (0..10_000).map(|k| row![k, "new", 2]).collect();
        assert_eq!(small().upsert(tx, half)?, counts(0, 5_000, 5_000, 0));
        Ok(())
    });
    played.await.unwrap();
}

#[tokio::test]
async fn every_float_comes_back_as_it_was() {
    let played = with_table("create table f (k integer primary key, x real)", |tx| {
        let mut dice = Dice::new(7);
        let edges = [f64::MAX, f64::MIN_POSITIVE, 5e-324, 0.1, 1.0 / 3.0, 9_007_199_254_740_993.0, -0.0];
        let random = (0..20_000).map(|_| f64::from_bits(dice.roll())).filter(|x| x.is_finite());
        let given: Vec<f64> = edges.into_iter().chain(random).collect();
        let rows: Vec<Row> = (0..).zip(&given).map(|(k, x)| row![k, *x]).collect();
        Sink::table("f").key("k", Type::Int).value("x", Type::Float).overwrite()?.upsert(tx, rows)?;
        let mut statement = tx.connection().prepare("select x from f order by k").unwrap();
        let read: Vec<f64> = statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
        let wrong = given.iter().zip(&read).filter(|(one, other)| one != other).count();
        assert_eq!((wrong, read.len()), (0, given.len()));
        Ok(())
    });
    played.await.unwrap();
}

#[tokio::test]
async fn a_page_with_a_nul_writes_nothing() {
    let played = with_table(SMALL, |tx| {
        let refused = small().upsert(tx, vec![row![1, "good", 1], row![2, "a\0b", 1]]).unwrap_err();
        assert!(matches!(refused, StoreError::Invalid(_)));
        assert!(refused.to_string().contains("column v of row 1 takes text without NUL"), "{refused}");
        Ok(tx.connection().query_row("select count(*) from t", [], |row| row.get::<_, i64>(0)).unwrap())
    });
    assert_eq!(played.await.unwrap(), 0);
}

#[tokio::test]
async fn a_table_that_is_not_as_described_is_named() {
    let cases = [
        ("create table u (k integer)", "no such table"),
        ("create table t (k integer primary key, s integer)", "no column named v"),
        ("create table t (k integer, v text, s integer)", "does not match any PRIMARY KEY or UNIQUE constraint"),
    ];
    for (table, words) in cases {
        let refused = with_table(table, |tx| small().upsert(tx, vec![row![1, "v", 1]])).await.unwrap_err();
        let said = refused.to_string();
        assert!(matches!(refused, StoreError::Schema(_)), "{table}: {refused:?}");
        assert!(said.starts_with("table t does not fit the database: ") && said.contains(words), "{said}");
    }
}

#[tokio::test]
async fn what_the_table_refuses_is_told_and_leaves_no_row() {
    let cases = [
        ("create table t (k integer primary key, v text not null, s integer)", true),
        ("create table t (k integer primary key, v text check (v <> 'bad'), s integer)", false),
        ("create table t (k integer primary key, v text unique, s integer)", false),
    ];
    for (place, (table, null)) in cases.into_iter().enumerate() {
        let played = with_table(table, move |tx| {
            let bad = if null { Value::Null } else { "bad".into() };
            let twice = if place == 2 { "bad".into() } else { Value::from("other") };
            let refused = small().upsert(tx, vec![vec![1.into(), twice, 1.into()], vec![2.into(), bad, 1.into()]]);
            match refused.unwrap_err() {
                StoreError::Invalid(invalid) => assert!(place < 2 && invalid.field == "row of", "{invalid}"),
                StoreError::Conflict(said) => {
                    assert!(place == 2 && said.starts_with("table t: a row was refused"), "{said}");
                }
                other => panic!("{other:?}"),
            }
            Ok(tx.connection().query_row("select count(*) from t", [], |row| row.get::<_, i64>(0)).unwrap())
        });
        assert_eq!(played.await.unwrap(), 0, "{table}");
    }
}

#[tokio::test]
async fn words_of_sql_and_a_schema_are_names_like_others() {
    let table =
        r#"create table "order" ("group" text, "select" integer, "primary" text, primary key ("group", "select"))"#;
    let played = with_table(table, |tx| {
        let names = Sink::table("main.order").key("select", Type::Int).key("group", Type::Text);
        let sink = names.clone().value("primary", Type::Text).overwrite()?;
        assert_eq!(sink.upsert(tx, vec![row![1, "a", "x"], row![1, "b", "x"]])?, counts(2, 0, 0, 0));
        assert_eq!(sink.upsert(tx, vec![row![1, "a", "x"], row![1, "b", None::<&str>]])?, counts(0, 1, 1, 0));
        // A table that is nothing but its key.
        assert_eq!(names.overwrite()?.upsert(tx, vec![row![1, "a"], row![2, "a"], row![2, "a"]])?, counts(1, 0, 1, 1));
        Ok(())
    });
    played.await.unwrap();
}

#[tokio::test]
async fn a_page_is_kept_with_its_transaction_only() {
    for fixture in [Fixture::memory().await, Fixture::file().await] {
        let made = fixture.store.transaction(|tx| {
            tx.connection().execute_batch(SMALL).map_err(StoreError::unavailable)?;
            small().upsert(tx, vec![row![1, "kept", 1]])
        });
        assert_eq!(made.await.unwrap(), counts(1, 0, 0, 0));
        let undone = fixture.store.transaction(|tx| {
            assert_eq!(small().upsert(tx, vec![row![1, "undone", 2], row![2, "undone", 2]])?, counts(1, 1, 0, 0));
            Err::<(), _>(StoreError::Conflict("the user changed its mind".into()))
        });
        assert!(undone.await.is_err());
        let again = fixture.store.transaction(|tx| small().upsert(tx, vec![row![1, "again", 2], row![2, "again", 2]]));
        assert_eq!(again.await.unwrap(), counts(1, 1, 0, 0));
        let ended = fixture.store.transaction(|tx| {
            tx.connection().execute_batch("commit").map_err(StoreError::unavailable)?;
            small().upsert(tx, vec![row![3, "half", 1]])
        });
        assert!(matches!(ended.await, Err(StoreError::Unavailable(..))));
    }
}
