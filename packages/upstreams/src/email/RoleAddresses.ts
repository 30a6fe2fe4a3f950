/** Role addresses, such as `info` or `sales`, which do not belong to a person. */
/// <reference path="./role-based-email-addresses.d.ts" />
import { Effect } from "effect"
import { once } from "./Once.ts"

const roles = once(async () => new Set((await import("role-based-email-addresses")).default))

/** Whether the part before the `@` names a role, in any case and with any tag: `Sales+spring` is `sales`. */
export const isRole: Effect.Effect<(local: string) => boolean> = Effect.map(roles, (roles) => (local) => {
  const tag = local.indexOf("+")
  return roles.has((tag < 0 ? local : local.slice(0, tag)).toLowerCase())
})
