/**
 * An authenticator in software, as WebAuthn Level 3 describes one: it makes P-256 key pairs, counts, and signs for a page. A test decides what
 * it says about the page, its user and its count.
 */
import { createHash, generateKeyPairSync, randomBytes, sign } from "node:crypto"

const text = (bytes: Uint8Array): string => Buffer.from(bytes).toString("base64url")
const sha256 = (bytes: Uint8Array | string): Buffer => createHash("sha256").update(bytes).digest()

// CBOR (RFC 8949), as far as an attestation needs it

const head = (major: number, value: number): Buffer =>
  value < 24
    ? Buffer.from([(major << 5) | value])
    : value < 256
      ? Buffer.from([(major << 5) | 24, value])
      : Buffer.from([(major << 5) | 25, value >> 8, value & 0xff])
const int = (value: number): Buffer => (value >= 0 ? head(0, value) : head(1, -1 - value))
const bytes = (value: Uint8Array): Buffer => Buffer.concat([head(2, value.length), value])
const string = (value: string): Buffer => Buffer.concat([head(3, Buffer.byteLength(value)), Buffer.from(value)])
const map = (...entries: ReadonlyArray<readonly [Buffer, Buffer]>): Buffer => Buffer.concat([head(5, entries.length), ...entries.flat()])

/** Flags of the authenticator's data. */
const USER_PRESENT = 1
const USER_VERIFIED = 4
const HAS_CREDENTIAL = 64

export interface Page {
  readonly origin: string
  readonly rpId: string
}

/** What it may say wrongly. */
export interface Says {
  readonly origin?: string
  readonly rpId?: string
  readonly type?: string
  /** Its count; what it counted, when left out. */
  readonly counter?: number
  readonly isVerified?: boolean
  readonly challenge?: string
  readonly userHandle?: string
}

interface Kept {
  readonly id: string
  readonly userHandle: string
  readonly sign: (data: Uint8Array) => Buffer
  counter: number
}

export const make = (page: Page, { counts = true }: { readonly counts?: boolean } = {}) => {
  const kept: Array<Kept> = []

  const clientData = (type: string, challenge: string, says: Says) =>
    Buffer.from(
      JSON.stringify({
        type: says.type ?? type,
        challenge: says.challenge ?? challenge,
        origin: says.origin ?? page.origin,
        crossOrigin: false
      })
    )

  const authenticatorData = (counter: number, { isVerified = true, rpId = page.rpId }: Says, credential?: Buffer) => {
    const fixed = Buffer.alloc(5)
    fixed[0] = USER_PRESENT | (isVerified ? USER_VERIFIED : 0) | (credential === undefined ? 0 : HAS_CREDENTIAL)
    fixed.writeUInt32BE(counter, 1)
    return Buffer.concat([sha256(rpId), fixed, ...(credential === undefined ? [] : [credential])])
  }

  return {
    kept,
    /** `navigator.credentials.create()`, as JSON. */
    create: (options: { readonly challenge: string; readonly user: { readonly id: string } }, says: Says = {}) => {
      const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" })
      const { x = "", y = "" } = publicKey.export({ format: "jwk" })
      const id = randomBytes(32)
      // COSE (RFC 9053): an ES256 key on P-256
      const key = map(
        [int(1), int(2)],
        [int(3), int(-7)],
        [int(-1), int(1)],
        [int(-2), bytes(Buffer.from(x, "base64url"))],
        [int(-3), bytes(Buffer.from(y, "base64url"))]
      )
      const length = Buffer.from([0, id.length])
      const data = authenticatorData(0, says, Buffer.concat([Buffer.alloc(16), length, id, key]))
      const attestation = map([string("fmt"), string("none")], [string("attStmt"), map()], [string("authData"), bytes(data)])
      kept.push({ id: text(id), userHandle: options.user.id, counter: 0, sign: (data) => sign("sha256", data, privateKey) })
      return {
        id: text(id),
        rawId: text(id),
        type: "public-key",
        authenticatorAttachment: "platform",
        clientExtensionResults: { credProps: { rk: true } },
        response: {
          clientDataJSON: text(clientData("webauthn.create", options.challenge, says)),
          attestationObject: text(attestation),
          authenticatorData: text(data),
          publicKeyAlgorithm: -7,
          transports: ["internal"]
        }
      } as const
    },
    /** `navigator.credentials.get()`, as JSON, with the newest passkey. */
    get: ({ challenge }: { readonly challenge: string }, says: Says = {}) => {
      const passkey = kept.at(-1)
      if (passkey === undefined) throw new Error("It has no passkey")
      if (counts) passkey.counter += 1
      const data = authenticatorData(says.counter ?? passkey.counter, says)
      const client = clientData("webauthn.get", challenge, says)
      return {
        id: passkey.id,
        rawId: passkey.id,
        type: "public-key",
        authenticatorAttachment: "platform",
        clientExtensionResults: {},
        response: {
          clientDataJSON: text(client),
          authenticatorData: text(data),
          signature: text(passkey.sign(Buffer.concat([data, sha256(client)]))),
          userHandle: says.userHandle ?? passkey.userHandle
        }
      } as const
    }
  }
}
export type Authenticator = ReturnType<typeof make>
