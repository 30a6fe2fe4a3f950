import type { Faults } from "./Faults.ts"

/** What decides a run, besides its workload. Plain data, so that a failure can print it. */
export interface Settings {
  readonly seed: number
  /** Steps before faults end: 40 by default. */
  readonly steps?: number | undefined
  /** 1 to 3 by default, by the seed. */
  readonly hosts?: number | undefined
  /** Probability that a caller uses an idempotency key: 0.7 by default. */
  readonly keys?: number | undefined
  /** Probability that a step opens an account by the host's own id, sometimes twice at once: 0.1 by default. */
  readonly opens?: number | undefined
  /**
   * Probability that a step does something to webhooks, which hosts then deliver. By default 0.25 in some three of ten seeds of the standard
   * workload, else 0: then there are none.
   */
  readonly webhooks?: number | undefined
  /**
   * Probability that a step does something to inboxes of temporary mail, or sends mail to them. By default 0.3 in some three of ten seeds of
   * the standard workload, else 0: then there are none.
   */
  readonly inboxes?: number | undefined
  /**
   * Probability that a step waits for a verification code, or sends a text message. By default 0.3 in some three of ten seeds of the standard
   * workload, else 0: then hosts have no public numbers.
   */
  readonly codes?: number | undefined
  /**
   * Probability that a step opens a proxy session, or uses one at any node. By default 0.3 in some two of ten seeds of the standard workload,
   * else 0: then hosts have no proxy nodes.
   */
  readonly proxies?: number | undefined
  /**
   * Probability that a step buys credits, or does something to a payment at the gateway, which may tell hosts of it. By default 0.3 in some
   * three of ten seeds of the standard workload, else 0: then hosts take no payments.
   */
  readonly payments?: number | undefined
  /**
   * Probability that a step does something to a subscription, or lets time pass to where one is due. By default 0.3 in some two of ten seeds of
   * the standard workload, else 0: then hosts have no plans. Where there are any, time skips, whatever `faults.leaps` says.
   */
  readonly subscriptions?: number | undefined
  /**
   * Probability that a step does something that people do: they sign up, sign in by links and out, call, and use their keys. By default 0.3 in
   * some two of ten seeds of the standard workload, else 0: then nobody can sign in.
   */
  readonly people?: number | undefined
  /** How many accounts more call whose address was never verified, so that they begin with a trial: 0 by default. */
  readonly trials?: number | undefined
  /** Whether one host leads each account, so that hosts forward calls to each other: false by default. */
  readonly leading?: boolean | undefined
  /** The keys of the operations that are called: all of the workload's by default. */
  readonly operations?: ReadonlyArray<string> | undefined
  /** Faults that are not given are drawn from the seed; `Simulator.none` has none. */
  readonly faults?: Partial<Faults> | undefined
}
