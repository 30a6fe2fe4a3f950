/** The configuration of all tests, for one that fails. */
import { fileURLToPath } from "node:url"
import { defineConfig } from "vitest/config"
import config from "../vitest.config.ts"

const include = [fileURLToPath(new URL("fails.ts", import.meta.url))]
const shared = config.test?.projects?.find((project) => typeof project === "object" && "test" in project && project.test?.name === "shared")
if (typeof shared !== "object" || !("test" in shared)) throw new Error("There is no project of shared tests")

export default defineConfig({ ...config, test: { ...config.test, projects: [{ ...shared, test: { ...shared.test, include } }] } })
