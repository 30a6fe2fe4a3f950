/**
 * The parser of messages, which gives attachments without the line break before a boundary: that belongs to the boundary (RFC 2046, section
 * 5.1.1). By itself it ends each line of a part with a break, also the last one, unless the part is in base64. Texts keep that break.
 */
import PostalMime from "postal-mime"

/** A decoder of the parser: of quoted-printable where it has a buffer, else of lines as they are. */
interface Decoder {
  readonly chunks: Array<Uint8Array | string>
  readonly buffer?: Uint8Array
  update(line: Uint8Array): void
  finalize(): Promise<ArrayBuffer>
}

/** What is used of a part. */
interface Part {
  readonly parentNode?: object
  readonly contentType: { readonly parsed: { readonly value: string }; readonly multipart: string | false }
  readonly contentDisposition: { readonly parsed: { readonly value: string } }
  contentDecoder: Decoder
  setupContentDecoder(transferEncoding: string): void
}

const EQUALS = 0x3d

/** Holds each line back until the next one comes, so that the last one can be decoded without its break. */
class WithoutLastBreak implements Pick<Decoder, "update" | "finalize"> {
  readonly #decoder: Decoder
  #last: Uint8Array | undefined

  constructor(decoder: Decoder) {
    this.#decoder = decoder
  }

  update(line: Uint8Array): void {
    if (this.#last !== undefined) this.#decoder.update(this.#last)
    this.#last = line
  }

  finalize(): Promise<ArrayBuffer> {
    const last = this.#last
    if (last !== undefined) {
      if (this.#decoder.buffer === undefined) this.#decoder.chunks.push(last)
      // The sign at the end of a line says that its break is none of the content
      else this.#decoder.update(last.at(-1) === EQUALS ? last : Buffer.concat([last, Uint8Array.of(EQUALS)]))
    }
    return this.#decoder.finalize()
  }
}

const isText = ({ contentDisposition, contentType }: Part): boolean =>
  contentDisposition.parsed.value !== "attachment" && /^text\/(?:plain|html)$/u.test(contentType.parsed.value)

/** The parser does not export the class of its parts. */
const { root } = new PostalMime() as unknown as { readonly root: Part }
const Parts: Part = Object.getPrototypeOf(root)
const { setupContentDecoder } = Parts

Parts.setupContentDecoder = function (this: Part, transferEncoding) {
  setupContentDecoder.call(this, transferEncoding)
  const isWhole = this.parentNode === undefined || this.contentType.multipart !== false
  if (isWhole || isText(this) || /base64/iu.test(transferEncoding)) return
  this.contentDecoder = new WithoutLastBreak(this.contentDecoder) as unknown as Decoder
}

/** Parses a message. */
export const parse: typeof PostalMime.parse = (raw, options) => PostalMime.parse(raw, options)
