import { agentsSdk } from "./agents_sdk.ts";
import { aiSdkAnthropic, aiSdkOpenai, aiSdkStateless } from "./ai_sdk.ts";
import { anthropicJs } from "./anthropic_js.ts";
import { claudeCode } from "./claude_code.ts";
import { codex, codexBuiltIn } from "./codex.ts";
import { openaiJs, openaiJsChat } from "./openai_js.ts";
import { openaiPython, openaiPythonChat } from "./openai_python.ts";
import type { Program } from "./program.ts";

/** Every program that is tried. */
export const programs: readonly Program[] = [
  codex,
  codexBuiltIn,
  claudeCode,
  openaiJs,
  openaiJsChat,
  openaiPython,
  openaiPythonChat,
  aiSdkOpenai,
  aiSdkStateless,
  aiSdkAnthropic,
  agentsSdk,
  anthropicJs,
];
