//! A page is one statement. Postgres counts them: it has triggers for statements, SQLite only for rows.

use kit::testing::Place;

use crate::bed::{Bed, listed};

const COUNTED: &str = "
  create table counted (n bigint not null);
  create function count_statement() returns trigger language plpgsql as $$
  begin
    insert into counted (n) values (1);
    return null;
  end $$;
  create trigger count_statements after insert on diamonds_raw for each statement execute function count_statement()";

/// Shows: S2.45
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_of_thirty_stones_is_one_statement() {
    let bed = Bed::open(Place::postgres(diamonds::TABLES).await, 100).await;
    bed.place.database.make_tables(COUNTED).await.unwrap();
    bed.schedule().await;
    bed.work().await;
    assert_eq!(bed.raw().await, listed(&bed.world));
    assert_eq!(bed.place.count("select count(*) as n from counted").await, 4, "30, 30, 30 and 10 stones");
}
