/**
 * A projection's state in the state store: a header line, then the state as JSON. A state that is too long for one entry is split into
 * several.
 */
import { Effect, Option, Schema } from "effect"
import { type Position, position } from "./EventStore.ts"
import { type Change, StateStore } from "./StateStore.ts"

const SPACE = "projections"

/** The most bytes of the state in one entry. Every store takes a value of this size. */
const PIECE = 512 * 1024

const Header = Schema.fromJsonString(Schema.Struct({ version: Schema.Int, position: Schema.String, pieces: Schema.Int }))
const encodeHeader = Schema.encodeSync(Header)
const decodeHeader = Schema.decodeUnknownOption(Header)

const open = (value: Uint8Array) => {
  const end = value.indexOf(0x0a)
  const header = Option.getOrUndefined(decodeHeader(Buffer.from(value.subarray(0, end)).toString()))
  return header === undefined ? undefined : { ...header, piece: value.subarray(end + 1) }
}

const pieceKey = (name: string, piece: number) => (piece === 0 ? name : `${name}/${piece}`)

export interface Stored {
  readonly position: Position
  readonly json: string
}

/** The last stored state; undefined if another version stored it. */
export const load = Effect.fnUntraced(function* (name: string, version: number) {
  const states = yield* StateStore
  for (;;) {
    const entry = yield* states.get(SPACE, name)
    const first = entry && open(entry.value)
    if (first === undefined || first.version !== version) return undefined
    const pieces = [first.piece]
    while (pieces.length < first.pieces) {
      const piece = yield* states.get(SPACE, pieceKey(name, pieces.length))
      // All entries of one write have the same version
      if (piece === undefined || piece.version !== entry?.version) break
      pieces.push(piece.value)
    }
    const stored: Stored = { position: position(first.position), json: Buffer.concat(pieces).toString() }
    if (pieces.length === first.pieces) return stored
    const again = yield* states.get(SPACE, name)
    if (again?.version === entry?.version) return undefined
  }
})

/** Replaces the stored state, unless the stored state is newer and of the same version. */
export const save = Effect.fnUntraced(function* (name: string, version: number, { position, json }: Stored) {
  const states = yield* StateStore
  const bytes = Buffer.from(json)
  const pieces = Math.max(1, Math.ceil(bytes.length / PIECE))
  const header = Buffer.from(`${encodeHeader({ version, position, pieces })}\n`)
  const further: Array<Change> = []
  for (let i = 1; i < pieces; i++)
    further.push({ _tag: "put", space: SPACE, key: pieceKey(name, i), value: bytes.subarray(i * PIECE, (i + 1) * PIECE) })
  const value = Buffer.concat([header, bytes.subarray(0, PIECE)])
  for (;;) {
    const entry = yield* states.get(SPACE, name)
    const there = entry && open(entry.value)
    if (there?.version === version && there.position > position) return
    const surplus: Array<Change> = []
    for (let i = pieces; i < (there?.pieces ?? 0); i++) surplus.push({ _tag: "remove", space: SPACE, key: pieceKey(name, i) })
    const first: Change = { _tag: "put", space: SPACE, key: name, value, expected: entry?.version ?? "absent" }
    const written = yield* states.write([first, ...further, ...surplus]).pipe(
      Effect.as(true),
      Effect.catchTag("StateConflict", () => Effect.succeed(false))
    )
    if (written) return
  }
})
