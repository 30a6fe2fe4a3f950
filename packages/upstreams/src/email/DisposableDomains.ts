/** Domains of services for throw-away addresses, from two lists of packages. */
import { Effect } from "effect"
import { once } from "./Once.ts"

/** Relays that hide a lasting address. Some lists name them, but their addresses are not throw-away. */
const RELAYS: ReadonlySet<string> = new Set(["duck.com", "mozmail.com", "simplelogin.com"])

/** Some 9,000 domains that are checked by hand. */
const first = once(async () => (await import("disposable-email-domains-js")).disposableEmailBlocklistSet())

/** Some 56,000 domains, one megabyte. */
const second = once(async () => (await import("mailchecker")).default.blacklist())

/** Whether a list has the domain or one above it: whoever owns `mailinator.com` owns `any.mailinator.com`. */
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
