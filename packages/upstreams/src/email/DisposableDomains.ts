/** Domains of disposable-address services, from the lists of two packages. */
import { Effect } from "effect"
import { once } from "./Once.ts"

/** Relays of permanent addresses. Some lists name them, but their addresses are not disposable. */
const RELAYS: ReadonlySet<string> = new Set(["duck.com", "mozmail.com", "simplelogin.com"])

/** About 9,000 domains, reviewed by hand. */
const first = once(async () => (await import("disposable-email-domains-js")).disposableEmailBlocklistSet())

/** About 56,000 domains, one megabyte. */
const second = once(async () => (await import("mailchecker")).default.blacklist())

/** Whether a list has the domain or a parent domain: the owner of `mailinator.com` owns `any.mailinator.com`. */
const covers = (list: ReadonlySet<string>, domain: string): boolean => {
  for (let at = 0; ; ) {
    if (list.has(domain.slice(at))) return true
    const dot = domain.indexOf(".", at)
    if (dot < 0) return false
    at = dot + 1
  }
}

/** Whether a domain, in lower case and ASCII, is disposable: by the first list, and with `consensus` by either. */
export const isDisposable = ({ consensus }: { readonly consensus: boolean }): Effect.Effect<(domain: string) => boolean> =>
  Effect.map(
    Effect.all(consensus ? [first, second] : [first]),
    (lists) => (domain) => !covers(RELAYS, domain) && lists.some((list) => covers(list, domain))
  )
