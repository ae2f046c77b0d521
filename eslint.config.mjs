import js from "@eslint/js";
import tseslint from "typescript-eslint";

export default tseslint.config(
  { ignores: [".build/", ".venv/", ".venvs/", ".rankscope/", "extension/dist/", ".editor/"] },
  js.configs.recommended,
  {
    files: ["**/*.ts"],
    extends: [tseslint.configs.strictTypeChecked, tseslint.configs.stylisticTypeChecked],
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    rules: {
      // numbers in messages are fine
      "@typescript-eslint/restrict-template-expressions": ["error", { allowNumber: true }],
      // vscode.Disposable is a class that everybody implements by its shape
      "@typescript-eslint/no-unsafe-class-instance-assignment": "off",
    },
  },
  {
    // node:test's own promises are awaited by its runner
    files: ["tests/extension/**/*.ts"],
    rules: { "@typescript-eslint/no-floating-promises": "off" },
  },
  {
    // what runs outside the editor prints
    files: ["tests/support/*.mjs", "tests/bench/*.mjs"],
    languageOptions: {
      globals: { Buffer: "readonly", console: "readonly", process: "readonly", setTimeout: "readonly" },
    },
  },
);
