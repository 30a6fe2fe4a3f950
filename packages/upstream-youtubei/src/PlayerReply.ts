/** What the worker thread of the player's code is asked, and its replies. */
import { Schema } from "effect"

/** The part of the player that makes links usable, as youtubei.js takes it out of the site's script. */
export const Extract = Schema.Struct({
  id: Schema.String,
  /** A number that the site wants to be told, so that its signatures fit. */
  timestamp: Schema.Int,
  output: Schema.String,
  exported: Schema.Array(Schema.String)
})
export type Extract = typeof Extract.Type

/** A link as the site gives it. */
export interface Locked {
  readonly url?: string
  readonly signature_cipher?: string
  readonly cipher?: string
}

export type PlayerOrder =
  | { readonly _tag: "Analyse"; readonly id: string; readonly script: string }
  | { readonly _tag: "Unlock"; readonly player: Extract; readonly links: ReadonlyArray<Locked> }

export const PlayerReply = Schema.TaggedUnion({
  Analysed: { player: Extract },
  /** In the order of the links; null from the one on at which the code failed. */
  Unlocked: { urls: Schema.Array(Schema.NullOr(Schema.String)) },
  /** The script has no such code, or none that can be found. */
  Unknown: {}
})
export type PlayerReply = typeof PlayerReply.Type
