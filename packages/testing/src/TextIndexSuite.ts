/** The contract of text indexes, as tests that each implementation runs unchanged. No test assumes that there is no other index. */
import { TextIndex } from "@millrace/event-sourcing"
import { type Effect, Layer, type Scope } from "effect"
import { declare, type Runner } from "./suites/Contract.ts"
import { peers, searching, writing } from "./suites/TextIndexContract.ts"

type Service = TextIndex.TextIndex["Service"]

/** Declares the tests of one implementation. `makeLayer` is built anew for each. */
export const textIndexSuite = (name: string, makeLayer: () => Layer.Layer<TextIndex.TextIndex, unknown>, runner: Runner): void => {
  declare(runner, `${name}: a search`, searching, TextIndex.TextIndex, makeLayer)
  declare(runner, `${name}: a write`, writing, TextIndex.TextIndex, makeLayer)
}

/** Declares the tests of two clients of one place of indexes, as two processes have them. */
export const textIndexPeersSuite = (
  name: string,
  makePeers: Effect.Effect<readonly [Service, Service], unknown, Scope.Scope>,
  runner: Runner
): void => declare(runner, `${name}: two clients`, peers, makePeers, () => Layer.empty)
