#!/usr/bin/env node
// Copies the template into a new folder: `npm create millrace@latest my-api`.
import { cpSync, existsSync, readdirSync, readFileSync, renameSync, statSync, writeFileSync } from "node:fs"
import { basename, join, resolve } from "node:path"
import { fileURLToPath } from "node:url"

const NAME = /^[a-z0-9][a-z0-9._-]{0,213}$/u
const template = fileURLToPath(new URL("../template", import.meta.url))
const { version } = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8"))

/** @param {string} sentence @returns {never} */
const refuse = (sentence) => {
  console.error(`create-millrace: ${sentence}`)
  process.exit(1)
}

const [given, ...more] = process.argv.slice(2)
if (given === undefined || given.startsWith("-") || more.length > 0)
  refuse("name the new folder, and nothing else: npm create millrace@latest my-api")
const folder = resolve(given)
const name = basename(folder)
if (!NAME.test(name)) refuse(`${name} cannot be the name of a package: use lower-case letters, digits, ".", "_" and "-"`)
if (existsSync(folder) && !statSync(folder).isDirectory()) refuse(`${folder} is a file`)
if (existsSync(folder) && readdirSync(folder).length > 0) refuse(`${folder} is not empty`)

try {
  cpSync(template, folder, { recursive: true })
  // npm leaves a .gitignore out of a package
  renameSync(join(folder, "gitignore"), join(folder, ".gitignore"))
  const file = join(folder, "package.json")
  const manifest = JSON.parse(readFileSync(file, "utf8"))
  manifest.name = name
  manifest.dependencies.millrace = version
  writeFileSync(file, `${JSON.stringify(manifest, null, 2)}\n`)
} catch (error) {
  refuse(`${folder} cannot be written: ${error instanceof Error ? error.message : String(error)}`)
}

console.log(`Made ${folder}. Next:

  cd ${given}
  npm install
  npm start`)
