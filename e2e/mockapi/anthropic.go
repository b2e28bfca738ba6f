package main

import (
	"encoding/json"
	"strings"
)

// messagesRequest is the part of a Messages API request that the model reads.
type messagesRequest struct {
	Model    string `json:"model"`
	Tools    []struct{ Name string }
	Messages []struct{ Content blocks }
}

// blocks are a message's content: a list of blocks, or a bare text.
type blocks []struct {
	Type    string
	Text    string
	Content blocks
}

func (b *blocks) UnmarshalJSON(data []byte) error {
	if data[0] == '"' {
		*b = make(blocks, 1)
		return json.Unmarshal(data, &(*b)[0].Text)
	}
	return json.Unmarshal(data, (*[]struct {
		Type    string
		Text    string
		Content blocks
	})(b))
}

func (b blocks) text() string {
	var s strings.Builder
	for _, block := range b {
		s.WriteString(block.Text)
	}
	return s.String()
}

// messages gives the events of the Messages API.
func messages(m *model, req *messagesRequest) []event {
	var tools, results []string
	for _, t := range req.Tools {
		tools = append(tools, t.Name)
	}
	for _, msg := range req.Messages {
		for _, block := range msg.Content {
			if block.Type == "tool_result" {
				results = append(results, block.Content.text())
			}
		}
	}

	r := m.next(tools, results)
	block, delta, reason := obj{"type": "text", "text": ""}, obj{"type": "text_delta", "text": r.text}, "end_turn"
	if r.tool != "" {
		block = obj{"type": "tool_use", "id": r.id, "name": r.tool, "input": obj{}}
		input, _ := json.Marshal(r.input)
		delta, reason = obj{"type": "input_json_delta", "partial_json": string(input)}, "tool_use"
	}
	var events []event
	for _, o := range []obj{
		{"type": "message_start", "message": obj{
			"id": "msg_1", "type": "message", "role": "assistant", "model": req.Model, "content": []any{},
			"usage": obj{"input_tokens": 1, "output_tokens": 1},
		}},
		{"type": "content_block_start", "index": 0, "content_block": block},
		{"type": "content_block_delta", "index": 0, "delta": delta},
		{"type": "content_block_stop", "index": 0},
		{"type": "message_delta", "delta": obj{"stop_reason": reason}, "usage": obj{"output_tokens": 1}},
		{"type": "message_stop"},
	} {
		events = append(events, event{name: o["type"].(string), data: o.String()})
	}
	return events
}
