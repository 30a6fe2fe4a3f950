/** A server that reads videos from the site itself, as an operator starts it. */
import { Effect, Exit, Scope } from "effect"
import { expect, onTestFinished, test } from "vitest"
import * as SiteServer from "../../packages/upstream-youtubei/test/SiteServer.ts"
import * as LocalService from "../../packages/upstreams/test/shared/LocalService.ts"
import { millrace } from "./InProcess.ts"
import { balanceOf, call, newStore, openAccount, problemOf, serve, UNLIMITED } from "./Server.ts"

const site = async (): Promise<string> => {
  const scope = Scope.makeUnsafe()
  onTestFinished(() => Effect.runPromise(Scope.close(scope, Exit.void)))
  return (await Effect.runPromise(Scope.provide(LocalService.serve(SiteServer.answer()), scope))).url.href
}

const PLACE = "/api/v1/social/videosite"

test("it gives downloads, by a link that the site's own code makes usable, and refunds what is refused", { timeout: 60_000 }, async () => {
  const { url: store } = newStore()
  const { account, key } = await openAccount(store, 10)
  const server = await serve(["--store", store, "--video", "youtubei", "--youtube-url", await site()], { env: UNLIMITED })
  for (const id of [SiteServer.idOf(0), "locked-0001"]) {
    const { body, status } = await call(`${server.url}${PLACE}/videos/${id}/download`, { key })
    expect([status, JSON.parse(body).data?.streams.length]).toEqual([200, 3])
  }
  const refused = await call(`${server.url}${PLACE}/videos/is-aged/download`, { key })
  expect([refused.status, problemOf(refused).code]).toEqual([409, "download_age_restricted"])
  expect(await balanceOf(store, account)).toMatchObject({ available: 8, held: 0 })
  const { body } = await call(`${server.url}/api/v1/catalog/capabilities/video.download`)
  expect(JSON.parse(body).data.availability.available).toBe(true)
  // A thread that made links usable does not keep the server from its end
  expect((await server.stop()).code).toBe(0)
})

test("the doctor says what downloads need", { timeout: 60_000 }, async () => {
  const { url: store } = newStore()
  await openAccount(store, 10)
  const needs = async (env: Readonly<Record<string, string>>) => {
    const { stdout } = await millrace(["doctor", "--store", store], { env })
    const { advice, detail } = JSON.parse(stdout).checks.find(({ name }: { readonly name: string }) => name === "upstreams")
    return `${detail} ${advice ?? ""}`
  }
  const key = { MILLRACE_YOUTUBE_KEY: "AIza" }
  expect(await needs({})).toMatch(/video\.download: MILLRACE_VIDEO=youtubei/u)
  expect(await needs({ MILLRACE_VIDEO: "youtube", ...key })).toMatch(/video\.download: MILLRACE_VIDEO=youtubei/u)
  expect(await needs({ MILLRACE_VIDEO: "youtubei" })).not.toMatch(/video\./u)
})
