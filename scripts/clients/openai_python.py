"""One turn of a conversation with OpenAI's SDK for Python: API STREAM PROMPT, in client.py's folder.

What the next turn needs is kept in turn.json.
"""

import json
import pathlib
import sys

sys.path.insert(0, ".")
from client import client  # noqa: E402 -- the guide's block

api, stream, prompt = sys.argv[1], sys.argv[2] == "stream", sys.argv[3]
kept = pathlib.Path("turn.json")
model = "gpt-4o-mini"
weather = {
    "name": "weather",
    "description": "Tells the weather of a city",
    "parameters": {
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
        "additionalProperties": False,
    },
}


def responses(previous, items):
    tools = [{"type": "function", "strict": True, **weather}]
    body = dict(model=model, input=items, tools=tools, previous_response_id=previous)
    if stream:
        with client.responses.stream(**body) as events:
            response = events.get_final_response()
    else:
        response = client.responses.create(**body)
    calls = [item for item in response.output if item.type == "function_call"]
    results = [
        {"type": "function_call_output", "call_id": call.call_id, "output": "tool-ran"}
        for call in calls
    ]
    return responses(response.id, results) if calls else (response.id, response.output_text)


def chat(messages):
    body = dict(
        model=model, messages=messages, tools=[{"type": "function", "function": weather}]
    )
    if stream:
        with client.chat.completions.stream(**body) as events:
            completion = events.get_final_completion()
    else:
        completion = client.chat.completions.create(**body)
    message = completion.choices[0].message
    messages.append(message.model_dump(exclude_none=True))
    for call in message.tool_calls or []:
        messages.append({"role": "tool", "tool_call_id": call.id, "content": "tool-ran"})
    return chat(messages) if message.tool_calls else (messages, message.content)


before = json.loads(kept.read_text()) if kept.exists() else None
user = {"role": "user", "content": prompt}
after, text = responses(before, [user]) if api == "responses" else chat([*(before or []), user])
kept.write_text(json.dumps(after))
print(text)
