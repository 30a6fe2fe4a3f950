/** The certificate of a server, read from PEM files and read again when they change. */
import { readFile } from "node:fs/promises"
import { createSecureContext } from "node:tls"
import { type Duration, Effect, Schema } from "effect"

export interface CertificateFiles {
  /** The path of the certificate with its chain, in PEM. */
  readonly certificate: string
  /** The path of the private key, in PEM. */
  readonly key: string
}

export interface Certificate {
  readonly cert: Buffer
  readonly key: Buffer
}

export class BadCertificate extends Schema.TaggedError<BadCertificate>()("BadCertificate", {
  certificate: Schema.String,
  key: Schema.String,
  reason: Schema.String
}) {
  override get message(): string {
    return `The certificate ${this.certificate} and the key ${this.key} cannot be used: ${this.reason}`
  }
}

/** `BadCertificate` if a file cannot be read, is malformed, or if the key is not of the certificate. */
export const read = (files: CertificateFiles): Effect.Effect<Certificate, BadCertificate> =>
  Effect.tryPromise({
    try: async () => {
      const [cert, key] = await Promise.all([readFile(files.certificate), readFile(files.key)])
      createSecureContext({ cert, key })
      return { cert, key }
    },
    catch: (cause) => new BadCertificate({ ...files, reason: cause instanceof Error ? cause.message : "not an error" })
  })

/**
 * Looks at the files again and again, and applies what they hold when it changed. Files that cannot be used change nothing but the log, which
 * calls the server by its name, such as `The SMTP server`.
 */
export const follow = (
  server: string,
  files: CertificateFiles,
  first: Certificate,
  every: Duration.Input,
  apply: (certificate: Certificate) => void
): Effect.Effect<never> => {
  let current = first
  const look = Effect.gen(function* () {
    const next = yield* read(files)
    if (next.cert.equals(current.cert) && next.key.equals(current.key)) return
    apply(next)
    current = next
    yield* Effect.logInfo(`${server} has a new certificate`)
  }).pipe(Effect.catch((error) => Effect.logWarning(`${error.message}. ${server} keeps the one it has`)))
  return Effect.sleep(every).pipe(Effect.andThen(look), Effect.forever)
}
