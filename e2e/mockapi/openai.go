package main

import "encoding/json"

// completionsRequest is the part of a chat completions request that the model
// reads.
type completionsRequest struct {
	Model string
	Tools []struct {
		Function struct{ Name string }
	}
	Messages []struct {
		Role    string
		Content blocks
	}
}

// completions gives the events of the chat completions API.
func completions(m *model, req *completionsRequest) []event {
	var tools, results []string
	for _, t := range req.Tools {
		tools = append(tools, t.Function.Name)
	}
	for _, msg := range req.Messages {
		if msg.Role == "tool" {
			results = append(results, msg.Content.text())
		}
	}

	r := m.next(tools, results)
	delta, reason := obj{"role": "assistant", "content": r.text}, "stop"
	if r.tool != "" {
		input, _ := json.Marshal(r.input)
		delta = obj{"role": "assistant", "tool_calls": []obj{{
			"index": 0, "id": r.id, "type": "function",
			"function": obj{"name": r.tool, "arguments": string(input)},
		}}}
		reason = "tool_calls"
	}
	chunk := func(delta obj, reason any) event {
		return event{data: obj{
			"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": req.Model,
			"choices": []obj{{"index": 0, "delta": delta, "finish_reason": reason}},
			"usage":   obj{"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
		}.String()}
	}
	return []event{chunk(delta, nil), chunk(obj{}, reason), {data: "[DONE]"}}
}
