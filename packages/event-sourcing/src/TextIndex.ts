/**
 * Full-text search over documents that are derived from the log. An index stores the position of the log up to which it was derived, in the
 * same transaction as its documents. So it can be lost at any time: it is then derived anew. A {@link TextProjection} keeps one up to date.
 */
import { Context, type Effect, Schema } from "effect"
import type { Position } from "./EventStore.ts"

export interface Document {
  /** At most 500 characters. */
  readonly id: string
  /** The text whose words are searched. */
  readonly text: string
  /** Matched exactly and as a whole, such as the name of what the document belongs to. */
  readonly keys: ReadonlyArray<string>
  /** A finite number. Of documents that match equally well, the one with more weight comes first. */
  readonly weight: number
  /** Whatever the reader needs, returned as it is. It is not searched. */
  readonly value: string
}

export interface Query {
  /** Its words, in lower case and without accents, are searched as whole words. Without a word, `keys` alone selects. */
  readonly text?: string
  /** Whether a document must have all words of the text, as by default, or any of them. */
  readonly match?: "all" | "any"
  /** A document must have all of them. */
  readonly keys?: ReadonlyArray<string>
  /** The most documents to return: 100 by default. */
  readonly limit?: number
}

/** The most distinct words of a query that are searched. Further words are ignored. */
export const MOST_WORDS = 32

export interface Write {
  /** The position that the index must be at. */
  readonly after: Position
  /** The position that it is at from now on. */
  readonly position: Position
  /** Replaces documents of the same id. */
  readonly put: ReadonlyArray<Document>
  /** The ids of the documents to remove. An unknown id is ignored. */
  readonly remove: ReadonlyArray<string>
}

export class TextIndexUnavailable extends Schema.TaggedError<TextIndexUnavailable>()("TextIndexUnavailable", {
  reason: Schema.String
}) {
  override get message(): string {
    return `The text index is not available: ${this.reason}`
  }
}

/** The documents of one name and version. */
export interface Index {
  /** The position up to which the documents were derived; the start of the log for a new index. */
  readonly position: Effect.Effect<Position, TextIndexUnavailable>
  readonly get: (ids: ReadonlyArray<string>) => Effect.Effect<ReadonlyMap<string, Document>, TextIndexUnavailable>
  /** Applies all changes or none. Returns false, and changes nothing, if the index is not at the expected position. */
  readonly write: (write: Write) => Effect.Effect<boolean, TextIndexUnavailable>
  /**
   * The best matches first. Where all words must match, the order is by weight, then by id. Where any word may match, documents with more of
   * the words come first; how much a rare word or a short text counts is for each implementation to say. Of documents whose words of the query
   * are all in very many others, an implementation may look at the newest alone.
   */
  readonly search: (query: Query) => Effect.Effect<ReadonlyArray<Document>, TextIndexUnavailable>
  /** Removes all documents, and moves the index to the start of the log. */
  readonly clear: Effect.Effect<void, TextIndexUnavailable>
}

/** Whether a name can be that of an index: at most 40 letters and digits, lower-case letter first. */
export const isIndexName = (name: string): boolean => /^[a-z][a-z0-9]{0,39}$/u.test(name)

export class TextIndex extends Context.Service<
  TextIndex,
  {
    /**
     * Opens an index by its name, see {@link isIndexName}, and removes the documents of lower versions. The version is raised whenever the
     * documents are derived differently.
     */
    readonly open: (name: string, version: number) => Effect.Effect<Index, TextIndexUnavailable>
  }
>()("@millrace/event-sourcing/TextIndex") {}
