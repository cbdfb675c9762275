// Command genpb turns the .proto files of internal/pb/proto into Go, without
// protoc: it compiles them with protocompile, hands the descriptors to the
// plug-ins pinned as tools in go.mod (protoc-gen-go and protoc-gen-go-vtproto)
// and writes what they answer. Run it through go generate ./internal/pb.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bufbuild/protocompile"
	"github.com/bufbuild/protocompile/protoutil"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"
)

const module = "github.com/holdfast-hbase/holdfast"

// plugins are run in order; each gets the same descriptors.
var plugins = []struct{ tool, parameter string }{
	{"protoc-gen-go", "module=" + module},
	{"protoc-gen-go-vtproto", "module=" + module + ",features=marshal+unmarshal+size"},
}

func main() {
	root := flag.String("root", ".", "folder of go.mod; imports between .proto files are relative to it")
	dir := flag.String("proto", "internal/pb/proto", "folder of the .proto files, relative to root, with slashes")
	flag.Parse()
	if err := run(context.Background(), *root, *dir); err != nil {
		fmt.Fprintln(os.Stderr, "genpb:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, root, dir string) error {
	matches, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(dir), "*.proto"))
	if err != nil {
		return err
	}
	if len(matches) == 0 {
		return fmt.Errorf("no .proto files in %s", filepath.Join(root, dir))
	}
	names := make([]string, len(matches))
	for i, m := range matches {
		names[i] = path.Join(dir, filepath.Base(m))
	}
	slices.Sort(names)
	req, err := compile(ctx, root, names)
	if err != nil {
		return err
	}
	written := map[string]bool{}
	for _, p := range plugins {
		req.Parameter = proto.String(p.parameter)
		if err := runPlugin(ctx, root, p.tool, req, written); err != nil {
			return fmt.Errorf("%s: %w", p.tool, err)
		}
	}
	return removeStale(filepath.Join(root, filepath.FromSlash(path.Dir(dir))), written)
}

// compile parses and links the files and lists them, dependencies first, as
// plug-ins expect.
func compile(ctx context.Context, root string, names []string) (*pluginpb.CodeGeneratorRequest, error) {
	c := protocompile.Compiler{
		Resolver:       protocompile.WithStandardImports(&protocompile.SourceResolver{ImportPaths: []string{root}}),
		SourceInfoMode: protocompile.SourceInfoStandard,
	}
	files, err := c.Compile(ctx, names...)
	if err != nil {
		return nil, err
	}
	req := &pluginpb.CodeGeneratorRequest{
		FileToGenerate: names,
		CompilerVersion: &pluginpb.Version{
			Major: proto.Int32(0), Minor: proto.Int32(0), Patch: proto.Int32(0), Suffix: proto.String("protocompile"),
		},
	}
	seen := map[string]bool{}
	var add func(fd protoreflect.FileDescriptor)
	add = func(fd protoreflect.FileDescriptor) {
		if seen[fd.Path()] {
			return
		}
		seen[fd.Path()] = true
		for i := range fd.Imports().Len() {
			add(fd.Imports().Get(i).FileDescriptor)
		}
		req.ProtoFile = append(req.ProtoFile, descriptorOf(fd))
	}
	for _, f := range files {
		add(f)
	}
	return req, nil
}

func descriptorOf(fd protoreflect.FileDescriptor) *descriptorpb.FileDescriptorProto {
	return protoutil.ProtoFromFileDescriptor(fd)
}

func runPlugin(ctx context.Context, root, tool string, req *pluginpb.CodeGeneratorRequest, written map[string]bool) error {
	in, err := proto.MarshalOptions{Deterministic: true}.Marshal(req)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "go", "tool", tool)
	cmd.Dir = root
	cmd.Stdin = bytes.NewReader(in)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return err
	}
	var resp pluginpb.CodeGeneratorResponse
	if err := proto.Unmarshal(out, &resp); err != nil {
		return err
	}
	if resp.Error != nil {
		return errors.New(resp.GetError())
	}
	for _, f := range resp.File {
		if !filepath.IsLocal(filepath.FromSlash(f.GetName())) {
			return fmt.Errorf("refusing to write %q outside the module", f.GetName())
		}
		name := filepath.Join(root, filepath.FromSlash(f.GetName()))
		if err := os.WriteFile(name, []byte(f.GetContent()), 0o644); err != nil {
			return err
		}
		written[filepath.Base(name)] = true
	}
	return nil
}

// removeStale deletes generated files whose .proto is gone.
func removeStale(dir string, written map[string]bool) error {
	old, err := filepath.Glob(filepath.Join(dir, "*.pb.go"))
	if err != nil {
		return err
	}
	for _, name := range old {
		if base := filepath.Base(name); !written[base] && strings.HasSuffix(base, ".pb.go") {
			if err := os.Remove(name); err != nil {
				return err
			}
		}
	}
	return nil
}
