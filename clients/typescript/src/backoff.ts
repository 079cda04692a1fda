/** Backoff: longer pauses after each error in a row. */

/** From `firstMs` to `mostMs`, doubling, with jitter, so that workers do not come back all at once. */
export class Backoff {
  #ceilingMs: number;

  constructor(
    private readonly firstMs: number,
    private readonly mostMs: number,
  ) {
    this.#ceilingMs = firstMs;
  }

  nextMs(): number {
    this.#ceilingMs = Math.min(this.mostMs, this.#ceilingMs * 2);
    const floorMs = Math.max(this.firstMs, this.#ceilingMs / 2);
    return floorMs + Math.random() * (this.#ceilingMs - floorMs);
  }

  reset(): void {
    this.#ceilingMs = this.firstMs;
  }
}
