/** Job: what was claimed, as the handler sees it. */

/** `attempt` counts from 1. `id` stays the same over all attempts and is a good idempotency key. */
export interface Job {
  readonly id: string;
  readonly kind: string;
  /** Whatever JSON the producer gave. */
  readonly payload: any;
  readonly queue: string;
  readonly attempt: number;
  readonly maxAttempts: number | null;
  readonly losses: number;
  readonly priority: number | null;
  readonly tenant: string | null;
  readonly trace: string | null;
  readonly gate: string | null;
  readonly runAt: string | null;
  readonly createdAt: string | null;
}

export function jobFromWire(queue: string, members: any): Job {
  if (typeof members.id !== "string" || typeof members.kind !== "string") throw new TypeError("a job without id or kind");
  return {
    id: members.id,
    kind: members.kind,
    payload: members.payload ?? null,
    queue,
    attempt: members.attempt ?? 1,
    maxAttempts: members.max_attempts ?? null,
    losses: members.losses ?? 0,
    priority: members.priority ?? null,
    tenant: members.tenant ?? null,
    trace: members.trace ?? null,
    gate: members.gate ?? null,
    runAt: members.run_at ?? null,
    createdAt: members.created_at ?? null,
  };
}
