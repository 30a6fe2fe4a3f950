/** A node that proxies over TLS: its certificate is renewed while it serves. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { connect } from "node:tls"
import { Effect, Layer, Logger, Queue } from "effect"
import { TestClock } from "effect/testing"
import { expect } from "vitest"
import { CannotServeProxy, ProxyServer } from "../../src/proxy/ProxyServer.ts"
import * as SelfSigned from "../mail/SelfSigned.ts"
import * as Node from "./Node.ts"
import { testing } from "./Testing.ts"

const files = Effect.gen(function* () {
  const folder = yield* Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "millrace-proxy-"))),
    (folder) => Effect.sync(() => rmSync(folder, { recursive: true }))
  )
  const paths = { certificate: join(folder, "cert.pem"), key: join(folder, "key.pem") }
  const put = ({ cert, key }: SelfSigned.SelfSigned) => {
    writeFileSync(paths.certificate, cert)
    writeFileSync(paths.key, key)
  }
  return { paths, put }
})

/** The common name of the certificate that a port shows. */
const nameShown = (port: number): Effect.Effect<unknown> =>
  Effect.callback((resume) => {
    const socket = connect({ host: "127.0.0.1", port, rejectUnauthorized: false }, () => {
      resume(Effect.succeed(socket.getPeerCertificate().subject.CN))
      socket.destroy()
    })
    socket.on("error", (error) => resume(Effect.succeed(error.message)))
  })

testing(
  "a certificate is read again when its files change; one that cannot be used is logged, and the old one stays",
  Effect.gen(function* () {
    const { paths, put } = yield* files
    const levels = yield* Queue.unbounded<string>()
    const logger = Logger.layer([Logger.make(({ logLevel }) => void Queue.offerUnsafe(levels, logLevel))])
    put(SelfSigned.make("first"))
    yield* Effect.gen(function* () {
      const port = yield* Node.portOf("https")
      expect(yield* nameShown(port)).toBe("first")
      const looked = Effect.andThen(TestClock.adjust("10 seconds"), Queue.take(levels))
      const next = SelfSigned.make("second")
      put({ ...next, key: SelfSigned.make().key })
      expect(yield* looked).toBe("Warn")
      expect(yield* nameShown(port)).toBe("first")
      put(next)
      expect(yield* looked).toBe("Info")
      expect(yield* nameShown(port)).toBe("second")
    }).pipe(
      Effect.provide(Node.serve({ allowed: [], certificate: paths }).pipe(Layer.provideMerge(Node.log()))),
      Effect.provide(Layer.merge(logger, TestClock.layer()))
    )
  })
)

testing(
  "a node does not start with a certificate that cannot be used",
  Effect.gen(function* () {
    const { paths, put } = yield* files
    const started = Layer.build(Node.serve({ allowed: [], certificate: paths }).pipe(Layer.provide(Node.log())))
    for (const prepare of [() => {}, () => put({ cert: "x", key: "y" })]) {
      prepare()
      const error = yield* Effect.flip(started)
      expect(error).toBeInstanceOf(CannotServeProxy)
      expect(error.message).toContain(paths.certificate)
    }
    put(SelfSigned.make())
    yield* Effect.provideContext(ProxyServer, yield* started)
  })
)
