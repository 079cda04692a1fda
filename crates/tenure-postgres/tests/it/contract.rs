//! The contract suite, straight to the server, without `LISTEN`, and behind PgBouncer.

mod direct {
    use tenure_postgres::Mode;
    tenure_contract::store_contract! { |clock| crate::database::fixture(Mode::Direct, clock) }
}

mod poll_only {
    use tenure_postgres::Mode;
    tenure_contract::store_contract! { |clock| crate::database::fixture(Mode::PollOnly, clock) }
}

mod pooled {
    use tenure_postgres::Mode;
    tenure_contract::store_contract! { |clock| crate::database::fixture(Mode::Pooled, clock) }
}
