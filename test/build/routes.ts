/** Writes the routes of the operations that come with Millrace, for the typed client: `npm run routes`. A test says when they are old. */
import { writeFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { Api } from "@millrace/http"
import { routesOf } from "@millrace/http/client"

export const FILE = fileURLToPath(new URL("../../packages/http/src/client/StandardRoutes.ts", import.meta.url))

const HEAD = `/**
 * The routes of the standard operations, written by \`npm run routes\` from the registry in core. They stand here as data because a web page
 * that imported the operations would load 320 kB instead of 10.
 */
import type { OperationsOf, Standard } from "../Api.ts"
import type { Routes } from "./Routes.ts"

export type StandardOperation = OperationsOf<Standard>

export const STANDARD_ROUTES: Routes<StandardOperation> = {
`

/** The whole file. */
export const text = (): string => {
  const lines = Object.entries(routesOf(Api.make(Api.standard))).map(([key, line]) => `  ${JSON.stringify(key)}: ${JSON.stringify(line)}`)
  return `${HEAD}${lines.join(",\n")}\n}\n`
}

if (import.meta.main) writeFileSync(FILE, text())
