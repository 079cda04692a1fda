// An order and the job that sends its invoice, from Node with `pg`:
//   npm install pg
//   DATABASE_URL=postgres://… node order.mjs
import pg from "pg";

const db = new pg.Client({ connectionString: process.env.DATABASE_URL });
await db.connect();
await db.query("create table if not exists orders (id bigint primary key, total_cents bigint not null)");

await db.query("begin"); // the order and its job, or neither
await db.query("insert into orders values (21, 1999)");
const enqueued = await db.query(
  "select * from tenure.enqueue('invoice.send', $1, queue => 'mail', idempotency_key => 'request-21')",
  [{ order: 21 }],
);
await db.query("commit");
const { job, created } = enqueued.rows[0];
console.log("created", created);

// The same request again is the same job; with another body it is refused.
const again = await db.query(
  "select * from tenure.enqueue('invoice.send', $1, queue => 'mail', idempotency_key => 'request-21')",
  [{ order: 21 }],
);
console.log("same job", again.rows[0].job === job);
try {
  await db.query("select * from tenure.enqueue('invoice.send', $1, queue => 'mail', idempotency_key => 'request-21')", [{ order: 22 }]);
} catch (refused) {
  console.log("refused", refused.code);
}

await db.query("select tenure.cancel($1)", [job]);
await db.query("select tenure.requeue($1)", [job]);
const { rows } = await db.query("select state from tenure.status($1)", [job]);
console.log("state", rows[0].state);
await db.end();
