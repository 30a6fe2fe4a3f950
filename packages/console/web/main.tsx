/** The web tool. */
import { render } from "preact"
import { App } from "./App.tsx"

const root = document.getElementById("tool")
if (root !== null) render(<App />, root)
