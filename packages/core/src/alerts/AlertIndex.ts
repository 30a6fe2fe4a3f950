/** The active price alerts: by product, by account, and by the call that registered them last. */
import { Projection } from "@millrace/event-sourcing"
import { HashMap, HashSet, Option, Schema } from "effect"
import { PriceAlert, type PriceAlertEvent } from "./PriceAlert.ts"

const Ids = Schema.HashMap(Schema.String, Schema.HashSet(Schema.String))
type Ids = typeof Ids.Type

const Alert = Schema.Struct({ accountId: Schema.String, product: Schema.String, reservationId: Schema.String })

export const AlertIndex = Schema.Struct({
  alerts: Schema.HashMap(Schema.String, Alert),
  products: Ids,
  accounts: Ids,
  reservations: Schema.HashMap(Schema.String, Schema.String)
})
export type AlertIndex = typeof AlertIndex.Type

/** The ids of the alerts of a product, or of an account. */
export const idsOf = (ids: Ids, key: string): HashSet.HashSet<string> =>
  Option.getOrElse(HashMap.get(ids, key), () => HashSet.empty<string>())

const add = (ids: Ids, key: string, id: string): Ids => HashMap.set(ids, key, HashSet.add(idsOf(ids, key), id))

/** A key without alerts leaves no entry. */
const remove = (ids: Ids, key: string, id: string): Ids => {
  const left = HashSet.remove(idsOf(ids, key), id)
  return HashSet.size(left) === 0 ? HashMap.remove(ids, key) : HashMap.set(ids, key, left)
}

/** The index without an alert. */
const without = (index: AlertIndex, id: string): AlertIndex => {
  const alert = Option.getOrUndefined(HashMap.get(index.alerts, id))
  if (alert === undefined) return index
  return {
    alerts: HashMap.remove(index.alerts, id),
    products: remove(index.products, alert.product, id),
    accounts: remove(index.accounts, alert.accountId, id),
    reservations: HashMap.remove(index.reservations, alert.reservationId)
  }
}

export const definition: Projection.Definition<AlertIndex> = {
  name: "priceAlerts",
  version: 1,
  state: AlertIndex,
  initial: () => ({ alerts: HashMap.empty(), products: HashMap.empty(), accounts: HashMap.empty(), reservations: HashMap.empty() }),
  ...Projection.of<AlertIndex, PriceAlertEvent>(PriceAlert, {
    PriceAlertRegistered: ({ accountId, product, reservationId }, { id }, before) => {
      const index = without(before, id)
      return {
        alerts: HashMap.set(index.alerts, id, { accountId, product, reservationId }),
        products: add(index.products, product, id),
        accounts: add(index.accounts, accountId, id),
        reservations: HashMap.set(index.reservations, reservationId, id)
      }
    },
    PriceAlertEnded: (_, { id }, index) => without(index, id)
  })
}
