/** Lists of disposable domains and of roles, loaded on first use. */
/// <reference path="./role-based-email-addresses.d.ts" />
import { Effect } from "effect"

/** Loads once for all uses. An interrupted use does not interrupt the loading. */
export const once = <A>(load: () => Promise<A>): Effect.Effect<A> => {
  let loaded: Promise<A> | undefined
  return Effect.promise(() => {
    loaded ??= load()
    return loaded
  })
}

/** Relays of permanent addresses. Some lists name them, but their addresses are not disposable. */
const RELAYS: ReadonlySet<string> = new Set(["duck.com", "mozmail.com", "simplelogin.com"])

/** About 9,000 domains, reviewed by hand. */
const first = once(async () => (await import("disposable-email-domains-js")).disposableEmailBlocklistSet())

/** About 56,000 domains, one megabyte. */
const second = once(async () => (await import("mailchecker")).default.blacklist())

/** Whether a list has the domain or a parent domain: the owner of `mailinator.com` owns `any.mailinator.com`. */
const covers = (list: ReadonlySet<string>, domain: string): boolean => {
  const labels = domain.split(".")
  return labels.some((_, level) => list.has(labels.slice(level).join(".")))
}

/** Whether a domain, in lower case and ASCII, is disposable: by the first list, and with `consensus` by either. */
export const isDisposable = ({ consensus }: { readonly consensus: boolean }): Effect.Effect<(domain: string) => boolean> =>
  Effect.map(
    Effect.all(consensus ? [first, second] : [first]),
    (lists) => (domain) => !covers(RELAYS, domain) && lists.some((list) => covers(list, domain))
  )

const roles = once(async () => new Set((await import("role-based-email-addresses")).default))

/** Whether the part before the `@` names a role such as `info`, in any case and with any tag: `Sales+spring` is `sales`. */
export const isRole: Effect.Effect<(local: string) => boolean> = Effect.map(
  roles,
  (roles) => (local) => roles.has((local.split("+", 1)[0] ?? "").toLowerCase())
)
