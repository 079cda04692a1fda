/** Event: what a worker tells its program, for logs and tests. */

/**
 * `name` is one of:
 * registered, ordered, stopped: the worker;
 * lost: a lease is gone, its handlers were told (`code` says how that became known);
 * started: a handler begins;
 * completed, failed, snoozed, released, canceled: the server stored that report (`detail` is the job's new state);
 * refused: the report was dropped (`code` is mostly `lease_lost`);
 * error: a request failed and is tried again, or a report could not be stored.
 */
export interface Event {
  name: string;
  lease?: number;
  job?: string;
  kind?: string;
  code?: string;
  detail?: string;
}

export type Listener = (event: Event) => void;

/** Without a listener, what somebody looks for afterwards is logged. A listener that throws harms nobody. */
export function teller(listener: Listener | undefined): Listener {
  return (event) => {
    try {
      if (listener) listener(event);
      else if (["lost", "refused", "error"].includes(event.name)) console.warn("tenure-client", JSON.stringify(event));
    } catch (error) {
      console.error("tenure-client: the listener threw on", event.name, error);
    }
  };
}
