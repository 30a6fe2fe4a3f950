/**
 * Unpacks the browser once, before any test. Its package unpacks it into the folder for temporary files where it is missing, and test files
 * that did so at the same time would start a program that another one still writes.
 */
import chromium from "@sparticuz/chromium"

export default async () => {
  await chromium.executablePath()
}
