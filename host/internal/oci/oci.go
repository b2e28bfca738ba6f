// Package oci carries frontend plugins to and from OCI registries.
//
// An artifact is a manifest of type [ArtifactType] with one layer, the
// executable, whose title annotation is the file's name. A plugin that is
// built for several platforms is an index of such manifests.
package oci

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"

	specs "github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/credentials"
	"oras.land/oras-go/v2/registry/remote/errcode"
	"oras.land/oras-go/v2/registry/remote/retry"

	"github.com/research-harness/harness/host/internal/problem"
	"github.com/research-harness/harness/host/internal/system"
	"github.com/research-harness/harness/host/internal/version"
)

const (
	// Scheme begins the name of a plugin in a registry.
	Scheme = "oci://"
	// ArtifactType is the type of the manifest of a plugin.
	ArtifactType = "application/vnd.research-harness.frontend.v1"

	layerType = "application/vnd.research-harness.frontend.executable.v1"
	maxSize   = 512 << 20 // bytes of a plugin
)

// Pulled is a plugin from a registry.
type Pulled struct {
	FileName string // as it was pushed
	Source   string // oci://REGISTRY/REPOSITORY@DIGEST, which names these bytes for good
	Data     []byte
}

// Executable is a plugin that is pushed. Platform is "os/arch", or empty for
// one that runs everywhere.
type Executable struct {
	Platform string
	FileName string
	Data     []byte
}

// Pull returns the plugin that ref, oci://REGISTRY/REPOSITORY:TAG or @DIGEST,
// names for the machine s. All that is returned is what the digests say.
func Pull(ctx context.Context, s *system.System, home, ref string) (*Pulled, error) {
	repo, parsed, err := open(s, home, ref)
	if err != nil {
		return nil, err
	}
	desc, err := repo.Resolve(ctx, parsed.Reference)
	if err != nil {
		return nil, failed(ref, parsed, err)
	}
	top := desc
	if desc.MediaType == ocispec.MediaTypeImageIndex {
		var index ocispec.Index
		if err := fetchJSON(ctx, repo, desc, &index); err != nil {
			return nil, failed(ref, parsed, err)
		}
		if desc, err = choose(index, s, ref); err != nil {
			return nil, err
		}
	}
	var manifest ocispec.Manifest
	if err := fetchJSON(ctx, repo, desc, &manifest); err != nil {
		return nil, failed(ref, parsed, err)
	}
	if manifest.ArtifactType != ArtifactType || len(manifest.Layers) != 1 || manifest.Layers[0].MediaType != layerType {
		return nil, problem.New(ref, "", "is not a frontend plugin: its type is %q", manifest.ArtifactType)
	}
	layer := manifest.Layers[0]
	if layer.Size > maxSize {
		return nil, problem.New(ref, "", "is larger than %d MiB", maxSize>>20)
	}
	data, err := content.FetchAll(ctx, repo, layer)
	if err != nil {
		return nil, failed(ref, parsed, err)
	}
	return &Pulled{
		FileName: layer.Annotations[ocispec.AnnotationTitle],
		Source:   Scheme + parsed.Registry + "/" + parsed.Repository + "@" + top.Digest.String(),
		Data:     data,
	}, nil
}

// choose picks the manifest for the machine s.
func choose(index ocispec.Index, s *system.System, ref string) (ocispec.Descriptor, error) {
	var have []string
	for _, m := range index.Manifests {
		if m.Platform == nil {
			continue
		}
		if m.Platform.OS == s.OS && m.Platform.Architecture == s.Arch {
			return m, nil
		}
		have = append(have, m.Platform.OS+"/"+m.Platform.Architecture)
	}
	return ocispec.Descriptor{}, problem.New(ref, "", "has no plugin for %s/%s; it has %s", s.OS, s.Arch, strings.Join(have, ", "))
}

// Push puts executables under ref, oci://REGISTRY/REPOSITORY:TAG, and returns
// the digest. One without a platform stands alone.
func Push(ctx context.Context, s *system.System, home, ref string, executables []Executable) (string, error) {
	repo, parsed, err := open(s, home, ref)
	if err != nil {
		return "", err
	}
	if parsed.ValidateReferenceAsTag() != nil {
		return "", problem.New(ref, "", "has no tag to push to").WithHint("write it as oci://REGISTRY/REPOSITORY:TAG")
	}
	index := ocispec.Index{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageIndex, ArtifactType: ArtifactType,
	}
	for _, e := range executables {
		desc, err := pushManifest(ctx, repo, e)
		if err != nil {
			return "", failed(ref, parsed, err)
		}
		if e.Platform == "" {
			if err := repo.Tag(ctx, desc, parsed.Reference); err != nil {
				return "", failed(ref, parsed, err)
			}
			return desc.Digest.String(), nil
		}
		goos, arch, _ := strings.Cut(e.Platform, "/")
		desc.Platform = &ocispec.Platform{OS: goos, Architecture: arch}
		index.Manifests = append(index.Manifests, desc)
	}
	data, err := json.Marshal(index)
	if err != nil {
		return "", err
	}
	desc, err := oras.TagBytes(ctx, repo, index.MediaType, data, parsed.Reference)
	if err != nil {
		return "", failed(ref, parsed, err)
	}
	return desc.Digest.String(), nil
}

// pushManifest pushes one executable with its manifest. The same bytes give
// the same digest.
func pushManifest(ctx context.Context, repo *remote.Repository, e Executable) (ocispec.Descriptor, error) {
	layer := content.NewDescriptorFromBytes(layerType, e.Data)
	layer.Annotations = map[string]string{ocispec.AnnotationTitle: e.FileName}
	exists, err := repo.Exists(ctx, layer)
	if err != nil {
		return layer, err
	}
	if !exists {
		if _, err := oras.PushBytes(ctx, repo, layerType, e.Data); err != nil {
			return layer, err
		}
	}
	return oras.PackManifest(ctx, repo, oras.PackManifestVersion1_1, ArtifactType, oras.PackManifestOptions{
		Layers:              []ocispec.Descriptor{layer},
		ManifestAnnotations: map[string]string{ocispec.AnnotationCreated: "1970-01-01T00:00:00Z"},
	})
}

// open returns the repository of ref, with the credentials that docker, oras
// and their like have for it.
func open(s *system.System, home, ref string) (*remote.Repository, registry.Reference, error) {
	parsed, err := registry.ParseReference(strings.TrimPrefix(ref, Scheme))
	if err != nil || parsed.Reference == "" {
		return nil, parsed, problem.New(ref, "", "is not the name of a plugin in a registry").
			WithHint("write it as oci://REGISTRY/REPOSITORY:TAG")
	}
	dir := s.Getenv("DOCKER_CONFIG")
	if dir == "" {
		dir = filepath.Join(home, ".docker")
	}
	store, err := credentials.NewStore(filepath.Join(s.Abs(dir), "config.json"), credentials.StoreOptions{})
	if err != nil {
		return nil, parsed, problem.New(filepath.Join(dir, "config.json"), "", "%w", err)
	}
	repo := &remote.Repository{
		Reference: parsed,
		PlainHTTP: local(parsed.Host()),
		Client: &auth.Client{
			Client:     &http.Client{Transport: retry.NewTransport(nil)},
			Header:     http.Header{"User-Agent": {"research-harness/" + version.Get().Version}},
			Cache:      auth.NewCache(),
			Credential: credentials.Credential(store),
		},
	}
	return repo, parsed, nil
}

// local reports a registry on this machine, which is spoken to without TLS,
// as other clients do.
func local(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// fetchJSON fetches a manifest, checked against its digest.
func fetchJSON(ctx context.Context, repo *remote.Repository, desc ocispec.Descriptor, v any) error {
	if desc.Size > 4<<20 {
		return errors.New("its manifest is larger than 4 MiB")
	}
	data, err := content.FetchAll(ctx, repo, desc)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, v)
}

// failed says in one line why the registry did not do what it was asked.
func failed(ref string, parsed registry.Reference, err error) error {
	resp, isResponse := errors.AsType[*errcode.ErrorResponse](err)
	switch {
	case errors.Is(err, errdef.ErrNotFound):
		return problem.New(ref, "", "is not in the registry")
	case isResponse && (resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden),
		errors.Is(err, auth.ErrBasicCredentialNotFound):
		return problem.New(ref, "", "the registry refuses access").WithHint("docker login %s", parsed.Registry)
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, content.ErrMismatchedDigest), errors.Is(err, content.ErrTrailingData):
		return problem.New(ref, "", "the download is not what its digest says: %w", err).WithHint("run the command again")
	}
	return problem.New(ref, "", "%w", err)
}
