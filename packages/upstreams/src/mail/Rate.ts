/** How often each client may do something: a number a minute, all at once or spread. Remembers a bounded number of clients. */
export class Rate {
  readonly #interval: number
  readonly #tolerance: number
  readonly #clients: number
  /** When each client has its whole allowance again, in milliseconds since 1970; in the order of their last use. */
  readonly #restoredAt = new Map<string, number>()

  constructor(perMinute: number, clients = 10_000) {
    this.#interval = 60_000 / perMinute
    this.#tolerance = 60_000 - this.#interval
    this.#clients = clients
  }

  /** Whether the client may do it now, which then counts. */
  take(client: string, now: number): boolean {
    const from = Math.max(this.#restoredAt.get(client) ?? 0, now)
    if (from - now > this.#tolerance) return false
    this.#restoredAt.delete(client)
    this.#restoredAt.set(client, from + this.#interval)
    for (const [oldest, instant] of this.#restoredAt) {
      if (instant > now && this.#restoredAt.size <= this.#clients) break
      this.#restoredAt.delete(oldest)
    }
    return true
  }
}
