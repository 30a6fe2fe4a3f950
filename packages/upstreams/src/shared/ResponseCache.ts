/**
 * Replies of upstreams, kept for as long as the upstream itself allows (RFC 9111): by its `Cache-Control` and `Expires`, and beyond that for
 * conditional requests by `ETag` or `Last-Modified`. Nothing is kept by guess. The cache is that of one client, so what is private to the
 * host's credentials may be kept too.
 */
import type { Clock } from "effect"
import CachePolicy from "http-cache-semantics"
import { LRUCache } from "lru-cache"
import type { Reply } from "./ByteService.ts"

export interface Request {
  readonly method: string
  readonly url: string
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>
}

interface Entry {
  readonly policy: CachePolicy
  readonly reply: Reply
}

/** What is known of a request: the reply, where it is fresh, or the headers that ask whether it has changed. */
export type Found =
  | { readonly _tag: "Fresh"; readonly reply: Reply }
  | { readonly _tag: "Stale"; readonly entry: Entry; readonly conditions: Readonly<Record<string, string>> }
  | { readonly _tag: "None" }

const NONE: Found = { _tag: "None" }

/** What an entry takes beside its bytes, roughly. */
const OVERHEAD = 2_048

export class ResponseCache {
  readonly #entries: LRUCache<string, Entry>
  readonly #Policy: typeof CachePolicy

  /** `byteLimit`: of all replies together; one reply may take an eighth of it. */
  constructor(clock: Clock.Clock, byteLimit: number) {
    this.#entries = new LRUCache({
      maxSize: byteLimit,
      maxEntrySize: Math.floor(byteLimit / 8),
      sizeCalculation: ({ reply }) => reply.bytes.byteLength + OVERHEAD
    })
    this.#Policy = class extends CachePolicy {
      now(): number {
        return clock.currentTimeMillisUnsafe()
      }
    }
  }

  find(request: Request): Found {
    const entry = this.#entries.get(keyOf(request))
    if (entry === undefined) return NONE
    if (entry.policy.satisfiesWithoutRevalidation(request)) return { _tag: "Fresh", reply: entry.reply }
    const { "if-modified-since": since, "if-none-match": tags } = entry.policy.revalidationHeaders(request)
    const conditions = {
      ...(typeof tags === "string" && { "if-none-match": tags }),
      ...(typeof since === "string" && { "if-modified-since": since })
    }
    return Object.keys(conditions).length === 0 ? NONE : { _tag: "Stale", entry, conditions }
  }

  /** Takes the reply to a request, of which `found` was known, and returns the reply to answer with. Undefined for a 304 that nobody asked for. */
  take(request: Request, found: Found, reply: Reply): Reply | undefined {
    const key = keyOf(request)
    if (reply.status === 304) {
      if (found._tag !== "Stale") return undefined
      const { policy } = found.entry.policy.revalidatedPolicy(request, reply)
      this.#entries.set(key, { policy, reply: found.entry.reply })
      return found.entry.reply
    }
    if (reply.status === 200) {
      const policy = new this.#Policy(request, reply, OPTIONS)
      const isUseful = policy.timeToLive() > 0 || reply.headers["etag"] !== undefined || reply.headers["last-modified"] !== undefined
      if (policy.storable() && isUseful) this.#entries.set(key, { policy, reply })
      else this.#entries.delete(key)
    }
    if (GONE.has(reply.status)) this.#entries.delete(key)
    return reply
  }
}

const GONE: ReadonlySet<number> = new Set([404, 410])

const OPTIONS: CachePolicy.Options = { shared: false, cacheHeuristic: 0 }

/** Requests with one key have one reply. */
export const keyOf = ({ headers, method, url }: Request): string => JSON.stringify([method, url, Object.entries(headers).sort()])
