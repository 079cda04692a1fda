"""An order and the job that sends its invoice, from Python with psycopg 3.

    pip install "psycopg[binary]"
    DATABASE_URL=postgres://… python3 order.py
"""

import os

import psycopg
from psycopg.types.json import Jsonb

with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as db:
    db.execute("create table if not exists orders (id bigint primary key, total_cents bigint not null)")

    with db.transaction():  # the order and its job, or neither
        db.execute("insert into orders values (11, 1999)")
        job, created, _ = db.execute(
            "select * from tenure.enqueue('invoice.send', %s, queue => 'mail', unique_key => 'invoice:11')",
            [Jsonb({"order": 11})],
        ).fetchone()
    print("created", created)

    jobs = [{"kind": "invoice.send", "payload": {"order": n}, "queue": "mail", "delay": 60} for n in (12, 13)]
    stored = db.execute("select created from tenure.enqueue_many(%s)", [Jsonb(jobs)]).fetchall()
    print("stored", len(stored))

    try:
        db.execute("select * from tenure.enqueue('invoice.send', priority => 7)")
    except psycopg.Error as refused:
        print(refused.sqlstate, refused.diag.message_primary)

    (canceled,) = db.execute("select tenure.cancel(%s, reason => 'the customer called')", [job]).fetchone()
    (state,) = db.execute("select state from tenure.status(%s)", [job]).fetchone()
    print(canceled, "then", state)
