/** `charges`: the hold of a request, its price, its lots and its end, each with its event. */
import { Vault } from "@millrace/core"
import { Effect, Layer } from "effect"
import { Command } from "effect/cli"
import * as Administration from "../Administration.ts"
import * as Charges from "../administration/Charges.ts"
import * as Output from "../Output.ts"
import * as StateUrl from "../StateUrl.ts"
import * as StoreUrl from "../StoreUrl.ts"

/** Opens what is sealed with the key and the state of a store, where they are there. */
const revealBy = Effect.fnUntraced(function* (store: string) {
  const state = yield* StateUrl.State
  const secrets = Layer.provide(StoreUrl.secretsLayer(store), Layer.succeed(StateUrl.State, state))
  const reveal: Charges.Reveal = (accountId, sealed) =>
    Vault.Vault.use((vault) => vault.open(Vault.ofAccount(accountId), "failure", sealed)).pipe(
      Effect.provide(Layer.provide(Vault.Vault.layer, secrets))
    )
  return reveal
})

const show = Command.make(
  "show",
  {
    store: Administration.store,
    request: Administration.id("request", "Id of the request: X-Request-Id of its reply"),
    json: Output.json
  },
  ({ request, store, json }) =>
    Effect.gen(function* () {
      for (const charge of yield* Charges.show(request, yield* revealBy(store))) yield* Output.print(json, charge)
    }).pipe(Effect.provide(StoreUrl.logLayer(store)))
).pipe(
  Command.withDescription("Show what a request held, at which price, from which lots, and how it ended, each with its event"),
  Administration.withExamples({
    "millrace charges show --request 5f0c7c4e-7c39-4d2f-9b57-0d1f3a3f7a11": "Find a call by the request id of its reply"
  })
)

export const charges = Administration.group("charges", "Look at single charges", [show])
