/**
 * Price alerts of accounts: registers them, ends them, and tells which ones a price is for. `PriceAlertUpkeep` takes up the prices that hosts
 * read, and sends the mails.
 *
 * The log has neither name nor address of a product: they are sealed under the account's key, and the streams are named by HMACs.
 */
import { Aggregate, type EventStore, Projection, type StateStore } from "@millrace/event-sourcing"
import { Context, Effect, HashMap, HashSet, Layer, Option, Schema } from "effect"
import { MailNotConfigured, MailRelay } from "../accounts/MailRelay.ts"
import { PublicAddress } from "../accounts/PublicAddress.ts"
import * as Token from "../accounts/Token.ts"
import { Ledger } from "../ledger/Ledger.ts"
import { PriceObservations } from "../prices/PriceObservations.ts"
import * as Product from "../prices/Product.ts"
import { ofAccount, Vault, type VaultFailure } from "../vault/Vault.ts"
import { AddressNotVerified } from "../work/OperationError.ts"
import * as AlertIndex from "./AlertIndex.ts"
import * as PriceAlert from "./PriceAlert.ts"

/** The account has as many active alerts as it may. */
export class TooManyAlerts extends Schema.TaggedError<TooManyAlerts>()("TooManyAlerts", { limit: Schema.Int }) {
  override get message(): string {
    return `The account has ${this.limit} price alerts, which is the limit`
  }
}

/** What an account asks for. */
export interface Wish {
  readonly accountId: string
  /** Of the product, see `ProductIdentity.identityOf`. */
  readonly identity: string
  /** As the mail names it. */
  readonly name: string
  readonly url: string
  /** An exact decimal in the shop's currency. */
  readonly target: string
  readonly reservationId: string
}

export interface Registered {
  readonly alertId: string
  readonly productId: string
  readonly target: string
  /** The newest price that a host read; null if none did. */
  readonly current: string | null
  /** The address that ends the alert. */
  readonly unsubscribe: string
}

/** What an alert is about, opened. */
export interface Subject {
  readonly name: string
  readonly url: string
  readonly productId: string
}

/** The most active alerts of an account. */
export const LIMIT = 1_000

/** Below the public address: the page that ends an alert, with its token as `?token=`. */
export const END_PATH = "/price-alerts/end"

const PURPOSE = "price-alerts"
const PRODUCT = "price-alerts.product"
const TOKEN = "price-alerts.end"

const Sealed = Schema.fromJsonString(Schema.Struct({ name: Schema.String, url: Schema.String, productId: Schema.String }))
const encodeSealed = Schema.encodeSync(Sealed)
const decodeSealed = Schema.decodeSync(Sealed)

type Unread = Projection.ProjectionBehind | Projection.ProjectionStopped

/** What an {@link PriceAlerts} is made of, where a host sends mail with links. */
const mailing = Effect.gen(function* () {
  const relay = Option.getOrUndefined(yield* Effect.serviceOption(MailRelay))
  const address = Option.getOrUndefined(yield* Effect.serviceOption(PublicAddress))
  const missing = Effect.fail(new MailNotConfigured())
  return {
    relay,
    address: address ?? { url: missing, service: "" },
    configured: relay === undefined || address === undefined ? missing : relay.configured
  }
})

const make = Effect.gen(function* () {
  const vault = yield* Vault
  const ledger = yield* Ledger
  const observations = yield* PriceObservations
  const { address, configured, relay } = yield* mailing
  const alerts = yield* Aggregate.make(PriceAlert.PriceAlert)
  const index = yield* Projection.make(AlertIndex.definition)

  const productKey = (productId: string): string => vault.hmac(PRODUCT, productId)
  const secretOf = (alertId: string): string => vault.hmac(TOKEN, alertId)

  const unsubscribeOf = (alertId: string) =>
    Effect.map(address.url, ({ href }) => `${href.replace(/\/$/u, "")}${END_PATH}?token=${alertId}.${secretOf(alertId)}`)

  /** The alert that a token ends; undefined for a text that no host made. */
  const alertOf = (token: string): string | undefined => {
    const [alertId = "", secret = "", ...more] = token.split(".")
    return more.length === 0 && Token.isSecret(alertId) && Token.isEqual(secretOf(alertId), secret) ? alertId : undefined
  }

  /** Fails for an account that may not have an alert, or not another one. */
  const admit = Effect.fn("PriceAlerts.admit")(function* (accountId: string, identity: string) {
    yield* configured
    const { sealedEmail, status } = (yield* ledger.read(accountId)).state
    if (status !== "verified" || sealedEmail === "") return yield* new AddressNotVerified()
    const { state } = yield* index.caughtUp()
    const own = AlertIndex.idsOf(state.accounts, accountId)
    if (HashSet.size(own) >= LIMIT && !HashSet.has(own, idOf(accountId, identity))) return yield* new TooManyAlerts({ limit: LIMIT })
  })

  const idOf = (accountId: string, identity: string): string => vault.hmac(PURPOSE, JSON.stringify([accountId, identity]))

  const register = Effect.fn("PriceAlerts.register")(function* (wish: Wish, metadata?: Aggregate.Metadata) {
    const { accountId, identity, name, reservationId, target, url } = wish
    yield* admit(accountId, identity)
    const productId = Product.idOf(identity)
    const alertId = idOf(accountId, identity)
    const sealed = yield* vault.seal(ofAccount(accountId), PURPOSE, encodeSealed({ name, url, productId }))
    const newest = yield* observations.newest(productId)
    const terms = { accountId, product: productKey(productId), target, sealed, reservationId }
    yield* alerts.execute(alertId, PriceAlert.register(terms, newest ?? null), metadata)
    const current = newest?.price ?? null
    return { alertId, productId, target, current, unsubscribe: yield* unsubscribeOf(alertId) } satisfies Registered
  })

  const subjectOf = ({ accountId, sealed }: PriceAlert.Terms): Effect.Effect<Subject, VaultFailure> =>
    Effect.map(vault.open(ofAccount(accountId), PURPOSE, sealed), decodeSealed)

  /** What a call registered whose process died; undefined if it registered nothing. */
  const recover = Effect.fn("PriceAlerts.recover")(function* (reservationId: string) {
    const { state } = yield* index.caughtUp()
    const alertId = Option.getOrUndefined(HashMap.get(state.reservations, reservationId))
    if (alertId === undefined) return undefined
    const { terms } = (yield* alerts.read(alertId)).state
    if (terms?.reservationId !== reservationId) return undefined
    const { productId } = yield* subjectOf(terms)
    const current = (yield* observations.newest(productId))?.price ?? null
    return { alertId, productId, target: terms.target, current, unsubscribe: yield* unsubscribeOf(alertId) } satisfies Registered
  })

  const end = (alertId: string, reason: PriceAlert.EndReason): Effect.Effect<void, Aggregate.Failure> =>
    Effect.asVoid(alerts.execute(alertId, PriceAlert.end(reason)))

  return {
    /** Fails where this host sends no mail. */
    configured,
    admit,
    register,
    recover,
    /** Whether a text is the token of an alert that there was. It ends nothing. */
    isToken: (token: string): boolean => alertOf(token) !== undefined,
    /** Ends the alert of a token; again it changes nothing. False for a text that is no token. */
    unsubscribe: Effect.fn("PriceAlerts.unsubscribe")(function* (token: string) {
      const alertId = alertOf(token)
      if (alertId !== undefined) yield* end(alertId, "unsubscribed")
      return alertId !== undefined
    }),
    end,
    /** What an alert is about. `SubjectDestroyed` once its account was erased. */
    subjectOf,
    unsubscribeOf,
    alerts,
    relay,
    address,
    /** The active alerts of a product, as of a position of the log. */
    ofProduct: (productId: string, atLeast: EventStore.Position): Effect.Effect<Iterable<string>, Unread> =>
      Effect.map(index.read({ atLeast }), ({ state }) => AlertIndex.idsOf(state.products, productKey(productId))),
    ofAccount: (accountId: string, atLeast: EventStore.Position): Effect.Effect<Iterable<string>, Unread> =>
      Effect.map(index.read({ atLeast }), ({ state }) => AlertIndex.idsOf(state.accounts, accountId)),
    /** Alerts whose streams this host cannot read, and the status of the index: for `/ready`. */
    refused: alerts.refused,
    indexStatus: index.status
  }
})

export class PriceAlerts extends Context.Service<PriceAlerts, Effect.Success<typeof make>>()("@millrace/core/alerts/PriceAlerts") {
  /** With a `MailRelay` and a `PublicAddress` in its context, alerts can be registered. */
  static readonly layer: Layer.Layer<
    PriceAlerts,
    never,
    PriceObservations | Ledger | Vault | EventStore.EventStore | StateStore.StateStore
  > = Layer.effect(this, make)
}
