/** `webhooks`: where notices are posted to, and what became of them. */
import { Notices } from "@millrace/core"
import { Effect, Option } from "effect"
import { Argument, Flag } from "effect/cli"
import * as Administration from "../Administration.ts"
import * as Webhooks from "../administration/Webhooks.ts"
import { fail } from "../Failure.ts"
import * as Setting from "../Setting.ts"
import * as WebhookSettings from "../WebhookSettings.ts"

const ID = "wh_01M7YKD46JCP6VGMKADN3JSPJP"

const id = Argument.String("webhook").pipe(Argument.withDescription("Id of the webhook: wh_..."))
const url = Argument.String("url").pipe(Argument.withDescription("Where notices are posted to: https://..."))

const on = Flag.String("on").pipe(
  Flag.withDescription(`The notices that it gets, separated by commas: ${Notices.NAMES.join(", ")} (default: all)`),
  Flag.filterMap(
    (text) => Option.fromUndefinedOr(Setting.list((name) => name !== "")(text)),
    () => "names of notices, separated by commas"
  ),
  Flag.optional
)

const isAllowed = (setting: "yes" | "no") => Effect.provide(WebhookSettings.administering(setting === "yes"))
/** For commands that take no address and post nothing. */
const provided = isAllowed("no")

const add = Administration.act(
  "webhooks add",
  "Add a webhook. Its secret is shown once",
  {
    "millrace webhooks add https://example.com/hooks": "Post all notices to this address",
    "millrace webhooks add https://example.com/hooks --on job.ended,charge.refunded": "Post these notices"
  },
  {
    url,
    on,
    account: Administration.account.pipe(Flag.withDescription("Only notices of this account"), Flag.optional),
    label: Flag.String("label").pipe(Flag.withDescription("A name for it; stored sealed"), Flag.optional),
    allowPrivate: WebhookSettings.allowPrivate
  },
  ({ account, allowPrivate, label, on, url }, metadata) => {
    const options = {
      url,
      ...(Option.isSome(on) ? { on: on.value } : {}),
      ...(Option.isSome(account) ? { account: account.value } : {}),
      ...(Option.isSome(label) ? { label: label.value } : {})
    }
    return Webhooks.add(options, metadata).pipe(isAllowed(allowPrivate))
  }
)

const list = Administration.query(
  "list",
  "List all webhooks",
  { "millrace webhooks list": "List the webhooks with their addresses, without their secrets" },
  Administration.layer,
  {},
  () =>
    Webhooks.list.pipe(
      Effect.map((all) => all.map(({ on, ...webhook }) => ({ ...webhook, on: on === null ? "all" : on.join(" ") }))),
      provided
    )
)

const show = Administration.query(
  "show",
  "Show a webhook, and how many deliveries wait or were given up",
  { [`millrace webhooks show ${ID}`]: "Show whether it fails, and since when" },
  Administration.layer,
  { id },
  ({ id }) => provided(Webhooks.show(id))
)

const change = Administration.act(
  "webhooks change",
  "Change the address of a webhook, or the notices that it gets",
  { [`millrace webhooks change ${ID} --on all`]: "Post all notices from now on" },
  {
    id,
    url: Flag.String("url").pipe(Flag.withDescription("The new address"), Flag.optional),
    on,
    allowPrivate: WebhookSettings.allowPrivate
  },
  ({ allowPrivate, id, on, url }, metadata) => {
    const isAll = Option.isSome(on) && on.value.length === 1 && on.value[0] === "all"
    const changed = {
      ...(Option.isSome(url) ? { url: url.value } : {}),
      ...(Option.isSome(on) ? { on: isAll ? null : on.value } : {})
    }
    return Webhooks.change(id, changed, metadata).pipe(isAllowed(allowPrivate))
  }
)

const rotate = Administration.act(
  "webhooks rotate",
  "Make a new secret, which is shown once. The one before it signs as well for a time",
  { [`millrace webhooks rotate ${ID} --overlap 48`]: "Sign with both secrets for two days" },
  {
    id,
    overlap: Flag.Int("overlap").pipe(
      Flag.withDescription("Hours for which the secret before it signs as well (default: 24)"),
      Flag.filter(
        (hours) => hours >= 0 && hours <= 8_760,
        () => "hours from 0 to 8760"
      ),
      Flag.withDefault(24)
    )
  },
  ({ id, overlap }, metadata) => provided(Webhooks.rotate(id, overlap * 3_600_000, metadata))
)

const disable = Administration.act(
  "webhooks disable",
  "Send nothing to a webhook from now on. What happens meanwhile waits in the log",
  { [`millrace webhooks disable ${ID}`]: "Stop posting while the receiver is repaired" },
  { id },
  ({ id }, metadata) => provided(Webhooks.disable(id, metadata))
)

const enable = Administration.act(
  "webhooks enable",
  "Send again to a webhook that was disabled, and what happened meanwhile",
  { [`millrace webhooks enable ${ID} --skip`]: "Leave out what happened while it was disabled" },
  {
    id,
    skip: Flag.Boolean("skip").pipe(
      Flag.withDescription("Leave out what happened until now and was not delivered"),
      Flag.withDefault(false)
    )
  },
  ({ id, skip }, metadata) => provided(Webhooks.enable(id, skip, metadata))
)

const remove = Administration.act(
  "webhooks remove",
  "Remove a webhook for ever, with its address, its secrets and its deliveries",
  { [`millrace webhooks remove ${ID}`]: "Remove the webhook of this id" },
  { id },
  ({ id }, metadata) => Effect.as(provided(Webhooks.remove(id, metadata)), { webhook: id, removed: true })
)

const test = Administration.query(
  "test",
  "Post a notice webhook.test now, once, from this machine, and print what was answered",
  { [`millrace webhooks test ${ID}`]: "Try whether the receiver answers" },
  Administration.layer,
  { id, allowPrivate: WebhookSettings.allowPrivate },
  ({ allowPrivate, id }) => Webhooks.test(id).pipe(isAllowed(allowPrivate))
)

const deliveries = Administration.query(
  "deliveries",
  "List the deliveries of a webhook that wait: their attempts, how the last one ended, and when the next one is",
  { [`millrace webhooks deliveries ${ID}`]: "List what it has yet to get" },
  Administration.layer,
  { id },
  ({ id }) => provided(Webhooks.deliveries(id))
)

const dead = Administration.query(
  "dead",
  "List dead letters: deliveries that were given up after their last attempt",
  { "millrace webhooks dead": "List those of all webhooks" },
  Administration.layer,
  { id: Argument.optional(id) },
  ({ id }) => provided(Webhooks.dead(Option.getOrUndefined(id)))
)

const resend = Administration.query(
  "resend",
  "Send a dead letter again, or all of a webhook",
  {
    [`millrace webhooks resend --all ${ID} --since 2026-11-01T00:00:00Z`]: "Send all of what happened since then again",
    [`millrace webhooks resend ${ID}/0000000000000042.job.ended`]: "Send the dead letter of this id, as in the list"
  },
  Administration.layer,
  {
    delivery: Argument.String("delivery").pipe(Argument.withDescription("Id of the dead letter"), Argument.optional),
    all: Flag.String("all").pipe(Flag.withDescription("Send all dead letters of this webhook"), Flag.optional),
    since: Administration.time("since", "With --all: only of what happened from then on")
  },
  ({ all, delivery, since }) => {
    if (Option.isSome(all) && Option.isNone(delivery)) return provided(Webhooks.resendAll(all.value, Option.getOrUndefined(since)))
    if (Option.isSome(delivery) && Option.isNone(all)) return provided(Webhooks.resend(delivery.value))
    return fail("webhooks resend needs the id of a dead letter, or --all and the id of a webhook")
  }
)

export const webhooks = Administration.group("webhooks", "Post what happens to accounts, credits and jobs to addresses of yours", [
  add,
  list,
  show,
  change,
  rotate,
  disable,
  enable,
  remove,
  test,
  deliveries,
  dead,
  resend
])
