export * as BinlistBinDirectory from "./bin/BinlistBinDirectory.ts"
export * as CardTypeBinDirectory from "./bin/CardTypeBinDirectory.ts"
export * as HarperGrammarChecker from "./grammar/HarperGrammarChecker.ts"
export * as LanguageToolGrammarChecker from "./grammar/LanguageToolGrammarChecker.ts"
