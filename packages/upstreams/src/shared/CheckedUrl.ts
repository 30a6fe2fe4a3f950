/** The URLs that this host follows for others: http or https, at known ports, without credentials. Their addresses are `PinnedHost.ts`'s. */
import { Result } from "effect"

const SCHEMES: ReadonlyMap<string, number> = new Map([
  ["http:", 80],
  ["https:", 443]
])

export const PORTS: ReadonlyArray<number> = [...SCHEMES.values()]

/** The statuses whose `Location` is followed. */
export const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308])

/** Parses a URL, or a reference relative to `base`. A failure completes a sentence, such as "must not bear credentials". */
export const parse = (text: string, ports: ReadonlyArray<number> = PORTS, base?: URL): Result.Result<URL, string> => {
  const url = URL.parse(text, base?.href)
  const port = url === null ? undefined : url.port === "" ? SCHEMES.get(url.protocol) : Number(url.port)
  if (url === null || port === undefined || !SCHEMES.has(url.protocol)) return Result.fail("must be an http or https address")
  if (url.username !== "" || url.password !== "") return Result.fail("must not bear credentials")
  return ports.includes(port) ? Result.succeed(url) : Result.fail(`must be at port ${ports.join(" or ")}`)
}
