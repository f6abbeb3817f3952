package dts

// SettingChange is a setting of a server that differs from how it runs, and what became of that.
type SettingChange struct {
	Setting string `json:"setting" doc:"its name in the configuration file"`
	From    string `json:"from" doc:"how the server runs, or ran; secrets are left out"`
	To      string `json:"to"`
	Restart bool   `json:"restart,omitempty" doc:"it holds from the next start of the server on; else it holds now"`
}
