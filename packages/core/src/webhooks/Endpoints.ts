/** The webhooks of a log, and which notices each of them gets: a projection. */
import { EventStore, Projection } from "@millrace/event-sourcing"
import { HashMap, Option, Schema } from "effect"
import type { Notice } from "../notices/Notices.ts"
import { Webhook, type WebhookEvent } from "./Webhook.ts"

export const Endpoint = Schema.Struct({
  status: Schema.Literals(["enabled", "disabled"]),
  names: Schema.NullOr(Schema.Array(Schema.String)),
  accountId: Schema.NullOr(Schema.String),
  /** Only what happened after this position is delivered. */
  since: Schema.String
})
export type Endpoint = typeof Endpoint.Type

/** The webhooks that were not removed, by id. */
export const Endpoints = Schema.HashMap(Schema.String, Endpoint)
export type Endpoints = typeof Endpoints.Type

const changed = (endpoints: Endpoints, id: string, change: Partial<Endpoint>): Endpoints =>
  HashMap.modify(endpoints, id, (endpoint) => ({ ...endpoint, ...change }))

export const definition: Projection.Definition<Endpoints> = {
  name: "webhooks",
  version: 1,
  state: Endpoints,
  initial: () => HashMap.empty(),
  ...Projection.of<Endpoints, WebhookEvent>(Webhook, {
    WebhookAdded: ({ accountId, names }, { id, position }, endpoints) =>
      HashMap.set(endpoints, id, { status: "enabled", names, accountId, since: position }),
    WebhookChanged: ({ names }, { id }, endpoints) => (names === undefined ? endpoints : changed(endpoints, id, { names })),
    WebhookDisabled: (_, { id }, endpoints) => changed(endpoints, id, { status: "disabled" }),
    WebhookEnabled: ({ skipped }, { id, position }, endpoints) =>
      changed(endpoints, id, { status: "enabled", ...(skipped === undefined ? {} : { since: position }) }),
    WebhookRemoved: (_, { id }, endpoints) => HashMap.remove(endpoints, id)
  })
}

/** The ids in the order in which the webhooks were added. */
export const idsOf = (endpoints: Endpoints): ReadonlyArray<string> => [...HashMap.keys(endpoints)].sort()

export const find = (endpoints: Endpoints, id: string): Endpoint | undefined => Option.getOrUndefined(HashMap.get(endpoints, id))

/** Whether a notice is for a webhook, enabled or not. */
export const selects = ({ accountId, names, since }: Endpoint, { account, name, position }: Notice): boolean =>
  (names === null || names.includes(name)) && (accountId === null || accountId === account) && position > since

/** Whether some webhook is for notices of a name. */
export const wanting = (endpoints: Endpoints): ((name: string) => boolean) => {
  const all = [...HashMap.values(endpoints)].map(({ names }) => names)
  const names = new Set(all.flatMap((chosen) => chosen ?? []))
  return all.includes(null) ? () => true : (name) => names.has(name)
}

/** The position after which a webhook may want something; undefined without webhooks. */
export const earliest = (endpoints: Endpoints): EventStore.Position | undefined => {
  const [first] = [...HashMap.values(endpoints)].map(({ since }) => since).sort()
  return first === undefined ? undefined : EventStore.position(first)
}
