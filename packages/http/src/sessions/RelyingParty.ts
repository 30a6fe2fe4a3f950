/**
 * Speaks WebAuthn (https://www.w3.org/TR/webauthn-3/) with browsers, by `@simplewebauthn/server`: what an authenticator is asked, and whether
 * what it answers is right for this site. A passkey is the only proof, so the authenticator must verify its user, by a PIN or a finger.
 */
import { isIP } from "node:net"
import { Passkey } from "@millrace/core"
import type * as WebAuthn from "@simplewebauthn/server"
import { Effect, Schema } from "effect"

/** The library is loaded when somebody uses a passkey: its 250 files are a tenth of what a process costs to start, and most need none. */
const webAuthn = (): Promise<typeof WebAuthn> => import("@simplewebauthn/server")

/** Passkeys belong to a host name, and people reach this server under an IP address. */
export class PasskeysUnavailable extends Schema.TaggedError<PasskeysUnavailable>()("PasskeysUnavailable", {
  /** Where passkeys can be used on this machine, if it has a name. */
  instead: Schema.NullOr(Schema.String)
}) {
  override get message(): string {
    const reason = "Passkeys need a host name, and this server is reached under an IP address"
    return this.instead === null ? reason : `${reason}. Open ${this.instead} instead`
  }
}

export interface RelyingParty {
  /** The host name that passkeys belong to. */
  readonly id: string
  /** Where its pages are. */
  readonly origin: string
  /** How authenticators show it. */
  readonly name: string
}

/** The name of this machine, for a server that only this machine reaches. */
const named = (base: URL): string | null =>
  base.hostname === "127.0.0.1" || base.hostname === "[::1]" ? Object.assign(new URL(base), { hostname: "localhost" }).origin : null

/** The party behind an address. */
export const of = (base: URL, name: string): Effect.Effect<RelyingParty, PasskeysUnavailable> =>
  isIP(base.hostname.replace(/^\[|\]$/gu, "")) === 0
    ? Effect.succeed({ id: base.hostname, origin: base.origin, name })
    : Effect.fail(new PasskeysUnavailable({ instead: named(base) }))

/** EdDSA, ES256 and RS256 (RFC 9053, RFC 8812). What the library adds by itself is experimental in Node.js, which warns of it. */
const ALGORITHMS = [-8, -7, -257]

/** A credential that can be used, or that is not to be added again. */
interface Descriptor {
  readonly credentialId: string
  readonly transports: ReadonlyArray<string>
}

const bytesOf = (text: string): Uint8Array<ArrayBuffer> => new Uint8Array(Buffer.from(text, "base64url"))

/** What a browser asks an authenticator for to add a passkey. */
export const creationOptions = (
  party: RelyingParty,
  user: { readonly id: string; readonly name: string; readonly has: ReadonlyArray<Descriptor> },
  challenge: string
): Effect.Effect<WebAuthn.PublicKeyCredentialCreationOptionsJSON> =>
  Effect.promise(async () =>
    (await webAuthn()).generateRegistrationOptions({
      rpName: party.name,
      rpID: party.id,
      userName: user.name,
      userID: bytesOf(user.id),
      challenge: bytesOf(challenge),
      excludeCredentials: user.has.map(({ credentialId, transports }) => ({ id: credentialId, transports: [...transports] })),
      supportedAlgorithmIDs: ALGORITHMS,
      authenticatorSelection: { residentKey: "required", userVerification: "required" }
    })
  )

/** What a browser asks an authenticator for to sign in: any passkey that it has for this site. */
export const requestOptions = ({ id }: RelyingParty, challenge: string): Effect.Effect<WebAuthn.PublicKeyCredentialRequestOptionsJSON> =>
  Effect.promise(async () =>
    (await webAuthn()).generateAuthenticationOptions({ rpID: id, challenge: bytesOf(challenge), userVerification: "required" })
  )

const INVALID = new Passkey.PasskeyRefused({ reason: "invalid" })

/** The library throws for whatever is not right. */
const checked = <A>(check: (library: typeof WebAuthn) => Promise<A>): Effect.Effect<A, Passkey.PasskeyRefused> =>
  Effect.flatMap(Effect.promise(webAuthn), (library) => Effect.tryPromise({ try: () => check(library), catch: () => INVALID }))

const ClientData = Schema.fromJsonString(Schema.Struct({ challenge: Schema.String }))
const decodeClientData = Schema.decodeUnknownEffect(ClientData)

/** The challenge that an answer says it is for. */
export const challengeOf = ({ response }: { readonly response: { readonly clientDataJSON: string } }) =>
  decodeClientData(Buffer.from(response.clientDataJSON, "base64url").toString()).pipe(
    Effect.mapBoth({ onFailure: () => INVALID, onSuccess: ({ challenge }) => challenge })
  )

/** The credential of an answer to {@link creationOptions}, if it is right. */
export const added = (
  { id, origin }: RelyingParty,
  response: WebAuthn.RegistrationResponseJSON,
  challenge: string
): Effect.Effect<{ readonly credentialId: string; readonly publicKey: string; readonly counter: number }, Passkey.PasskeyRefused> =>
  Effect.flatMap(
    checked((library) =>
      library.verifyRegistrationResponse({
        response,
        expectedChallenge: challenge,
        expectedOrigin: origin,
        expectedRPID: id,
        supportedAlgorithmIDs: ALGORITHMS
      })
    ),
    ({ registrationInfo }) =>
      registrationInfo === undefined
        ? Effect.fail(INVALID)
        : Effect.succeed({
            credentialId: registrationInfo.credential.id,
            publicKey: Buffer.from(registrationInfo.credential.publicKey).toString("base64url"),
            counter: registrationInfo.credential.counter
          })
  )

/** The count of the authenticator in an answer to {@link requestOptions}, if this credential gave it. Whether it counted on is not checked. */
export const signed = (
  { id, origin }: RelyingParty,
  response: WebAuthn.AuthenticationResponseJSON,
  challenge: string,
  credential: { readonly credentialId: string; readonly publicKey: string }
): Effect.Effect<number, Passkey.PasskeyRefused> =>
  Effect.flatMap(
    checked((library) =>
      library.verifyAuthenticationResponse({
        response,
        expectedChallenge: challenge,
        expectedOrigin: origin,
        expectedRPID: id,
        credential: { id: credential.credentialId, publicKey: bytesOf(credential.publicKey), counter: 0 }
      })
    ),
    ({ authenticationInfo, verified }) => (verified ? Effect.succeed(authenticationInfo.newCounter) : Effect.fail(INVALID))
  )
